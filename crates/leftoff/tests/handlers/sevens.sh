# A handler in plain sh that copies keys, but for those that end with 7: these it cannot handle. With a name, it says its process
# id in that file.
if [ -n "$1" ]; then echo $$ > "$1.new" && mv "$1.new" "$1"; fi
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
                *7) printf '{"id":"%s","error":"a seven","retry":false}\n' "$id" ;;
                *) printf '{"id":"%s","records":[{"key":"%s"}]}\n' "$id" "$key" ;;
            esac
            ;;
    esac
done
