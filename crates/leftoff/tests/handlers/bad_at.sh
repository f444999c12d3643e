# A handler in plain sh that is well until the event with the key $1, and then does what $2 says.
while IFS= read -r line; do
    case $line in
        '{"leftoff"'*) ;;
        '{"stop"'*) exit 0 ;;
        *)
            id=${line#*'"id":"'}
            id=${id%%'"'*}
            case $line in
                *'"key":"'$1'"'*)
                    case $2 in
                        exit) echo "last words" >&2; exit 3 ;;
                        garbage) echo "look here: $1" ;;
                        error) printf '{"id":"%s","error":"no such place"}\n' "$id" ;;
                        hang) while :; do sleep 1; done ;;
                        die) kill -9 $$ ;;
                        half) printf '{"id":"%s"' "$id"; exit 0 ;;
                    esac
                    ;;
                *) printf '{"id":"%s","records":[1]}\n' "$id" ;;
            esac
            ;;
    esac
done
