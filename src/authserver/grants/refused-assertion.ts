import { OAuthError } from '../oauth-error.ts'

/** An assertion that does not count: outside it is always the same, the cause is for the log. */
export class RefusedAssertion extends OAuthError {
  /** What is wrong, in our words. */
  readonly why: string

  constructor(why: string) {
    super('invalid_grant', 'the assertion is not accepted')
    this.name = 'RefusedAssertion'
    this.why = why
  }
}
