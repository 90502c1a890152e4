# SPDX-License-Identifier: MIT OR GPL-2.0
# Completion of nvme-peer(1) for bash. Commands and options are those of nvme-peer help.

_nvme_peer() {
	local word=${COMP_WORDS[COMP_CWORD]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD command='' before i help names
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
	[[ $command == help ]] || help=$(PATH=$PATH:/usr/local/sbin:/usr/sbin "${words[0]}" help $command 2>/dev/null)
	case $before in
	-o | --output-format)
		names=$(sed -n 's/,//g; s/^ *\(table.*\)/\1/p' <<<"$help")
		mapfile -t COMPREPLY < <(compgen -W "${names:-table json}" -- "$word")
		return
		;;
	--*) ! grep -q "^  $before [A-Z]" <<<"$help" || return ;;
	esac
	case $command in
	'') names="$(sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' <<<"$help") help" ;;
	help) names=$("${words[0]}" help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p') ;;
	bind | unbind) names=$(cd /sys/bus/pci/devices 2>/dev/null && grep -l '^0x010802' -- */class | cut -d/ -f1) ;;
	topo) names=$(cd /sys/bus/pci/devices 2>/dev/null && echo *) ;;
	qp) names='list status check' ;;
	serve) names=$(((cword == i + 1)) && echo check bench || compgen -f -- "$word") ;;
	file) names=$(((cword == i + 1)) && echo check prepare || compgen -f -- "$word") ;;
	store) names=$(((cword == i + 1)) && echo create list check bench || (cd /dev && compgen -G 'nvme*n*')) ;;
	list | doctor | events) ;;
	*) names=$(cd /sys/class/nvme-peer 2>/dev/null && echo *) ;;
	esac
	case $command in
	route) ((cword == i + 1)) || names=$(cd /sys/bus/pci/devices 2>/dev/null && echo *) ;;
	bench) ((cword == i + 1)) || names=$(cd /dev && compgen -G 'ngp*') ;;
	esac
	if [[ $word == -* ]]; then
		names=$(sed -n 's/^  \(-[a-z], \)*\(--[a-z-]*\).*/\2/p' <<<"$help")
	fi
	mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
	! declare -F __ltrim_colon_completions >/dev/null || __ltrim_colon_completions "$word"
}

complete -F _nvme_peer nvme-peer
