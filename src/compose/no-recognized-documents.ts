import { type Loaded, DOCUMENT_KINDS, type Problem, problemOfFile } from '../load/index.ts'

/** Number of documents of supported kinds, valid or not. */
export const documentsIn = ({ declared, registries, callers, roleTests, pods }: Loaded): number =>
  declared.length + registries.length + callers.length + roleTests.length + pods.length

/** The problem for input without any supported document, located at the first of `paths`; undefined if there is one. */
export function noRecognizedDocuments(loaded: Loaded, paths: readonly string[]): Problem | undefined {
  if (documentsIn(loaded) > 0 || loaded.problems.length > 0) return undefined
  const { length } = loaded.skipped
  const count = (amount: number, one: string): string => `${amount} ${one}${amount === 1 ? '' : 's'}`
  return problemOfFile(
    paths[0] ?? '(files)',
    `${length === 0 ? 'no document' : `none of ${count(length, 'document')}`} in ${count(loaded.files, 'file')}${length === 0 ? '' : ' is supported'}; supported: ${DOCUMENT_KINDS.join(', ')}, a registry file ("auth" and "registries") and an "auth" section, in files that end in .yaml, .yml or .json and in ConfigMaps`,
  )
}
