# A handler in plain sh that dies of the event with the key $1 for the first $2 times, over all its lives. It counts them in
# the file `marks`.
while IFS= read -r line; do
    case $line in
        '{"leftoff"'*) ;;
        '{"stop"'*) exit 0 ;;
        *)
            id=${line#*'"id":"'}
            id=${id%%'"'*}
            case $line in
                *'"key":"'$1'"'*)
                    echo x >> marks
                    [ "$(wc -l < marks)" -le "$2" ] && exit 3
                    ;;
            esac
            printf '{"id":"%s","records":[1]}\n' "$id"
            ;;
    esac
done
