# A handler that hears nothing, not even that its runner is gone. It says its process id in the file $1.
echo $$ > "$1.new" && mv "$1.new" "$1"
exec sleep 1000
