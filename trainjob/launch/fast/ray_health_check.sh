#!/bin/bash
# In the trainer image, `ray health-check --address HOST:PORT` waits until the head accepts connections. KubeRay's init
# container of each worker pod calls it every five seconds, with a fifth of a CPU: Ray's own first takes two seconds of
# CPU for its imports. All other commands are Ray's.
ray=/opt/trainjob/bin/ray
[[ $# == 3 && $1 == health-check && $2 == --address ]] || exec "$ray" "$@"

host=${3%:*} port=${3##*:}
for _ in {1..100}; do
    if timeout 2 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$host" "$port" 2>/dev/null; then exit 0; fi
    sleep 0.2
done
echo "The head does not accept connections at $3." >&2
exit 1
