/**
 * How YAML is written: lines are not folded, nothing is shared by aliases, and a text that YAML 1.1 reads as something else
 * (`on`, `y`, `3_600`) is in quotes, because kubectl and the reader's own warnings go by that version.
 */
export const WRITTEN_YAML = { compat: 'yaml-1.1', lineWidth: 0, aliasDuplicateObjects: false } as const
