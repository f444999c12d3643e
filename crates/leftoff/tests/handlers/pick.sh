# A handler in plain sh: events with the key k1 are filtered, k2 is handled without a record, k3 goes to the topic `other` with
# a key, k4 goes both ways, and of all others the key is written.
while IFS= read -r line; do
    case $line in
        '{"leftoff"'*) ;;
        '{"stop"'*) exit 0 ;;
        *)
            id=${line#*'"id":"'}
            id=${id%%'"'*}
            key=${line#*'"key":"'}
            key=${key%%'"'*}
            other='{"topic":"other","key":"'$key'","value":{"from":"'$key'"}}'
            case $key in
                k1) printf '{"id":"%s","filtered":true}\n' "$id" ;;
                k2) printf '{"id":"%s"}\n' "$id" ;;
                k3) printf '{"id":"%s","records":[%s]}\n' "$id" "$other" ;;
                k4) printf '{"id":"%s","records":[%s,"%s"]}\n' "$id" "$other" "$key" ;;
                *) printf '{"id":"%s","records":["%s"]}\n' "$id" "$key" ;;
            esac
            ;;
    esac
done
