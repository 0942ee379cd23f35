import { type Authenticator, createAuthenticator } from '../authenticate/index.ts'
import type { AuthSection } from '../resources/index.ts'

type AuthenticateDeps = Parameters<typeof createAuthenticator>[1]

/** Authenticators shared by all routes with the same `auth` section, and kept over reloads that do not change it. */
export interface Authenticators {
  /** The authenticator of a section; started when it is new. */
  get(section: AuthSection): Authenticator
  /** Closes those that no section of `current` needs any more. */
  retain(current: readonly AuthSection[]): Promise<void>
}

/** Keeps one authenticator per different section. */
export function createAuthenticators(deps: AuthenticateDeps): Authenticators {
  const byText = new Map<string, Authenticator>()
  return {
    get(section) {
      const text = JSON.stringify(section)
      const existing = byText.get(text)
      if (existing !== undefined) return existing
      const made = createAuthenticator(section, deps)
      byText.set(text, made)
      // Keys are fetched ahead of the first caller; what fails is logged there and tried again.
      void made.start()
      return made
    },
    async retain(current) {
      const wanted = new Set(current.map((section) => JSON.stringify(section)))
      const gone = [...byText].filter(([text]) => !wanted.has(text))
      for (const [text] of gone) byText.delete(text)
      await Promise.all(gone.map(([, authenticator]) => authenticator.close()))
    },
  }
}
