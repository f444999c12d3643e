# A handler in plain sh: the event with the key k0 is filtered, of odd keys a row of the table `odd` is made, of the others a
# record.
while IFS= read -r line; do
    case $line in
        '{"leftoff"'*) ;;
        '{"stop"'*) exit 0 ;;
        *)
            id=${line#*'"id":"'}
            id=${id%%'"'*}
            key=${line#*'"key":"'}
            key=${key%%'"'*}
            case $key in
                k0) printf '{"id":"%s","filtered":true}\n' "$id" ;;
                *[13579]) printf '{"id":"%s","records":[{"table":"odd","row":{"key":"%s"}}]}\n' "$id" "$key" ;;
                *) printf '{"id":"%s","records":[{"key":"%s"}]}\n' "$id" "$key" ;;
            esac
            ;;
    esac
done
