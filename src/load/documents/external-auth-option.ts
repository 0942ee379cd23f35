/** Splits `--external-auth FILE[#name]` at the last `#`. */
export function splitExternalAuth(option: string): { file: string; name: string | undefined } {
  const at = option.lastIndexOf('#')
  if (at < 0) return { file: option, name: undefined }
  return { file: option.slice(0, at), name: option.slice(at + 1) }
}
