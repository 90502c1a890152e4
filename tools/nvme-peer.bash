# SPDX-License-Identifier: MIT OR GPL-2.0
# Completion of nvme-peer(1) for bash.

_nvme_peer() {
	local word=${COMP_WORDS[COMP_CWORD]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD command='' before i
	# Addresses have colons, at which readline breaks words.
	! declare -F _get_comp_words_by_ref >/dev/null || _get_comp_words_by_ref -n : -c word -w words -i cword
	before=${words[cword - 1]}
	COMPREPLY=()
	for ((i = 1; i < cword; i++)); do
		case ${words[i]} in
		-o | --output-format) i=$((i + 1)) ;;
		-*) ;;
		*) command=${words[i]}; break ;;
		esac
	done
	case $before in
	-o | --output-format)
		mapfile -t COMPREPLY < <(compgen -W 'table json' -- "$word")
		return
		;;
	--fd | --host | --count | --entries | --size | --seconds | --cuda | --ranges) return ;;
	esac
	local options='--output-format' names=''
	case $command in
	'')
		options+=' --help --version'
		names='list bind unbind topo doctor info smart stat top reset route import-check events bench qp'
		;;
	bind | unbind)
		options+=' --dry-run --force --persist'
		names=$(cd /sys/bus/pci/devices 2>/dev/null && grep -l '^0x010802' -- */class | cut -d/ -f1)
		;;
	topo) names=$(cd /sys/bus/pci/devices 2>/dev/null && echo *) ;;
	info | smart | stat | top | reset | import-check | route) names=$(cd /sys/class/nvme-peer 2>/dev/null && echo *) ;;&
	top) options+=' --count' ;;
	import-check) options+=' --fd --host --require-device' ;;
	route)
		options+=' --fd'
		((cword == i + 1)) || names=$(cd /sys/bus/pci/devices 2>/dev/null && echo *)
		;;
	events) options+=' --count' ;;
	bench)
		options+=' --into --fd --cuda --ranges --polled --write --force --size --entries --seconds'
		names=$(cd /sys/class/nvme-peer 2>/dev/null && echo *)
		((cword == i + 1)) || names=$(cd /dev && compgen -G 'ngp*')
		;;
	qp)
		options+=' --entries'
		names='list status check'
		;;
	esac
	[[ $word != -* ]] || names=$options
	mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
	! declare -F __ltrim_colon_completions >/dev/null || __ltrim_colon_completions "$word"
}

complete -F _nvme_peer nvme-peer
