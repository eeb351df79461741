# shellcheck shell=bash
# What add-ons of the catalogue keep on this machine, a folder for each. An add-on that is gone has none. Only
# definitions; phase node sources it.
# Variable: ADDON_FOLDERS, words; may be unset.
KEPT_FOLDERS=${ROOT:-}/var/lib/kube-ha-addons

# Pods of the add-on may still run: the cluster's objects leave later. They keep what they have open, and make nothing
# new.
drop_addon_folders() {
  local folder
  for folder in "$KEPT_FOLDERS"/*; do
    if [[ ! -d $folder || " ${ADDON_FOLDERS:-} " == *" ${folder##*/} "* ]]; then continue; fi
    rm -rf -- "$folder"
    changes=$((changes + 1))
    log "removed $folder: no add-on of this cluster has it"
  done
  if [[ -d $KEPT_FOLDERS ]]; then rmdir --ignore-fail-on-non-empty "$KEPT_FOLDERS"; fi
}
