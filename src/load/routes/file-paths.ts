import path from 'node:path'
import { withValueAt } from '../../fields/index.ts'
import {
  type AuthSection,
  type AuthType,
  filesOfProvider,
  TYPE_RECORDS,
  type TypedSpec,
} from '../../resources/index.ts'

/** Resolves a path relative to the file that contains it (decisions §7). */
export function resolveBeside(file: string, name: string): string {
  return path.resolve(path.dirname(file), name)
}

/** The section with absolute file paths. */
export function anchorAuthSection(section: AuthSection, file: string): AuthSection {
  if (section.mode === 'anonymous') return section
  const providers = section.oauth.providers.map((one) =>
    filesOfProvider(one).reduce(
      (whole, { path: at, value }) => withValueAt(whole, at, resolveBeside(file, value)),
      one,
    ),
  )
  return { mode: 'oauth', oauth: { ...section.oauth, providers } }
}

/** The spec with absolute file paths. */
export function anchorSpec<T extends AuthType>({ type, spec }: TypedSpec<T>, file: string): TypedSpec<T> {
  const found = TYPE_RECORDS[type].files(spec)
  return {
    type,
    spec: found.reduce((whole, { path: at, value }) => withValueAt(whole, at, resolveBeside(file, value)), spec),
  }
}

/** Resolves those of the named properties that are set. */
export function anchored<K extends string>(
  object: { readonly [Name in K]?: string | undefined },
  names: readonly K[],
  file: string,
): { [Name in K]?: string } {
  const result: { [Name in K]?: string } = {}
  for (const name of names) {
    const value = object[name]
    if (value !== undefined) result[name] = resolveBeside(file, value)
  }
  return result
}
