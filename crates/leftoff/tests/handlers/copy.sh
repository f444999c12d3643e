# A handler in plain sh: answers each event with its key. With a name, it says its process id in that file.
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
            printf '{"id":"%s","records":[{"key":"%s"}]}\n' "$id" "$key"
            ;;
    esac
done
