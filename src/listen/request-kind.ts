/** How a request came to us. */
export interface RequestKind {
  /** The client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean
  readonly isUpgrade: boolean
}
