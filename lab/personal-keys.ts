import { LAB_USERS } from './identity/provider.ts'

/** The personal key of a user; published with this repository, valid for the demo services only. */
export const personalKeyOf = (user: string): string => `lab-key-${user}-that-is-no-secret`

/** Facts about the owner of a key; undefined for an unknown key. */
export function ownerOfKey(key: string): { readonly keyOf: string } | undefined {
  const owner = LAB_USERS.find(({ subject }) => personalKeyOf(subject) === key)
  return owner && { keyOf: owner.subject }
}

/** The page on which users find their key. */
export const personalKeysPage = (): string =>
  [
    '<!doctype html><meta charset="utf-8"><title>extauth lab</title>',
    '<h1>Personal keys</h1><p>This is a demo service: it shows the keys of all users.</p>',
    ...LAB_USERS.map(({ subject }) => `<p>${subject}: <code>${personalKeyOf(subject)}</code></p>`),
  ].join('\n')
