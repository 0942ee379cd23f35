/**
 * Format of written YAML: no folded lines, no aliases, and quotes around strings that YAML 1.1 reads differently
 * (`on`, `y`, `3_600`), because kubectl and the reader's own warnings follow that version.
 */
export const WRITTEN_YAML = { compat: 'yaml-1.1', lineWidth: 0, aliasDuplicateObjects: false } as const
