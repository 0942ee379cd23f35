import { OAuthError } from '../oauth-error.ts'

/** A rejected assertion. Clients always get the same description; the cause goes to the log. */
export class RefusedAssertion extends OAuthError {
  /** The cause, without external values. */
  readonly why: string

  constructor(why: string) {
    super('invalid_grant', 'the assertion is not accepted')
    this.name = 'RefusedAssertion'
    this.why = why
  }
}
