import {
  errorPage,
  html,
  isInvalidPageRequest,
  type Markup,
  NOTHING,
  type Page,
  renderPage,
  type Reply,
  type RevocationOutcome,
} from '../authserver/index.ts'
import type { Failure } from '../core/index.ts'
import type { ConnectionInfo, TestOutcome } from './accounts.ts'

/** A page with a text and nothing to do. */
const message = (
  status: number,
  title: string,
  text: string,
  requestId: string,
  setCookies?: readonly string[],
): Page => ({
  kind: 'page',
  status,
  html: errorPage({ title, text, requestId }),
  ...(setCookies === undefined ? {} : { setCookies }),
})

/** The link was used, has expired, or never existed. */
export const unknownLinkPage = (requestId: string): Reply =>
  message(
    404,
    'This link can’t be used any more',
    'It was already used, or has expired: links are valid for ten minutes. Nothing was changed. Go back to your application and repeat the request; it shows a new link.',
    requestId,
  )

/** The person who logged in is not the one for whom the link was made. */
export const otherPersonPage = (requestId: string, setCookies: readonly string[]): Reply =>
  message(
    403,
    'This link was made for somebody else',
    'You signed in, but this link belongs to another person. Nothing was connected, and the link still works for that person. If you did not ask for it yourself, close this page.',
    requestId,
    setCookies,
  )

/** The browser did not start this, or it is over. */
export const lostPage = (requestId: string): Reply =>
  message(
    400,
    'This can’t continue here',
    'It was started in another browser, was already used, or has expired. Nothing was changed. Go back to your application and repeat the request; it shows a new link.',
    requestId,
  )

export const canceledPage = (requestId: string, setCookies: readonly string[]): Reply =>
  message(
    200,
    'Nothing was connected',
    'You canceled. You can close this page; your application shows a new link when it needs the account.',
    requestId,
    setCookies,
  )

/** The page for a failure; nothing in it comes from outside. */
export function failurePage(failure: Failure, requestId: string, setCookies?: readonly string[]): Page {
  const [title, text] = wordsFor(failure)
  const { status, retryAfterSeconds } = failure
  return { ...message(status, title, text, requestId, setCookies), retryAfterSeconds }
}

function wordsFor(failure: Failure): readonly [title: string, text: string] {
  const { code, status } = failure
  if (code === 'login_refused')
    return [
      'Access was not allowed',
      'The service did not complete the request: it was canceled there, or you are not allowed to use this application. Nothing was connected.',
    ]
  if (code === 'connections_full')
    return [
      'No more accounts can be connected',
      'You, or all people together, have connected as many accounts as this service allows. Nothing was connected. Disconnect accounts that you no longer use, or ask the operator.',
    ]
  if (code === 'rate_limited')
    return ['Too many attempts', 'Your network sent too many requests. Wait a moment, then open the link again.']
  if (code === 'headers_too_large')
    return [
      'Request too large',
      'The link and this site’s cookies together exceed the size limit. Delete the cookies of this site, then open the link again.',
    ]
  if (isInvalidPageRequest(failure))
    return [
      'This request can’t be accepted',
      'It was not sent by a page of this site, or is too large. Nothing was changed. Go back to your application and open the link again.',
    ]
  if (status === 503)
    return [
      'A service cannot be reached',
      'A service that is needed to connect the account does not respond. Nothing was connected. Try again in a moment.',
    ]
  return [
    'The account was not connected',
    'An error occurred in this service. Nothing was connected. The operator can find the cause in the log.',
  ]
}

export interface ConsentParts {
  readonly label: string
  /** Host at which the account is. */
  readonly host: string
  readonly routes: readonly { readonly name: string; readonly host: string }[]
  readonly scopes: readonly string[]
  readonly createdAtMs: number
  /** The person, as proven; undefined with a single user. */
  readonly person: string | undefined
  readonly action: string
  readonly confirm: string
  /** Label and help of the field for a key; undefined for a login at the service. */
  readonly key:
    { readonly label: string; readonly helpUrl: string | undefined; readonly problem?: FormProblem } | undefined
}

/** Why the form is shown again. */
export interface FormProblem {
  readonly problem: string
  readonly status: number
  readonly requestId: string
}

/** The consent page: what is connected, for what, and when the link was created (connections.md §3). */
export function consentPage(parts: ConsentParts, setCookies?: readonly string[]): Reply {
  const { label, host, routes, scopes, createdAtMs, person, action, confirm, key } = parts
  const body = html`<h1>Connect your account at ${label}?</h1>
    ${person === undefined ? NOTHING : html`<p class="note">You are signed in as <bdi>${person}</bdi>.</p>`}
    ${
      key?.problem === undefined
        ? NOTHING
        : html`<p class="note" role="alert">
            ${key.problem.problem}
            <small>Request ${key.problem.requestId}</small>
          </p>`
    }
    <dl>
      <dt>Account at</dt>
      <dd>${label}<small>${host}</small></dd>
      <dt>Used for</dt>
      <dd>
        <ul>
          ${routes.map((route) => html`<li>${route.name}<small>requests to ${route.host}</small></li>`)}
        </ul>
      </dd>
      ${
        scopes.length === 0
          ? NOTHING
          : html`<dt>Access</dt>
              <dd>
                <ul>
                  ${scopes.map((scope) => html`<li>${scope}</li>`)}
                </ul>
              </dd>`
      }
      <dt>Link created</dt>
      <dd>${new Date(createdAtMs).toISOString().replace('T', ' ').slice(0, 16)} UTC</dd>
    </dl>
    <p>Continue only if you started this yourself, in your own application, just now.</p>
    <form method="post" action="${action}">
      <input type="hidden" name="confirm" value="${confirm}" />
      ${key === undefined ? NOTHING : keyField(key)}
      <button class="primary" name="decision" value="continue">${key === undefined ? 'Continue' : 'Connect'}</button>
      <button name="decision" value="cancel" formnovalidate>Cancel</button>
    </form>`
  return {
    kind: 'page',
    status: key?.problem?.status ?? 200,
    html: renderPage({ title: `Connect ${label}`, body }),
    ...(setCookies === undefined ? {} : { setCookies }),
  }
}

const keyField = ({ label, helpUrl }: NonNullable<ConsentParts['key']>): Markup =>
  html`<label
      >${label}<input type="password" name="key" autocomplete="off" spellcheck="false" maxlength="4096" required
    /></label>
    ${
      helpUrl === undefined
        ? NOTHING
        : html`<p>
            <small>Where to find it: <a href="${helpUrl}" rel="noreferrer">${helpUrl}</a></small>
          </p>`
    }`

/** The account is connected. */
export function completedPage(label: string, account: string | undefined, setCookies: readonly string[]): Reply {
  const body = html`<h1>Your account at ${label} is connected</h1>
    ${account === undefined ? NOTHING : html`<p class="note">Account <bdi>${account}</bdi></p>`}
    <p>You can close this page. Go back to your application and repeat the request.</p>`
  return { kind: 'page', status: 200, html: renderPage({ title: 'Account connected', body }), setCookies }
}

export interface ConnectionsPageParts {
  readonly connections: readonly {
    readonly info: ConnectionInfo
    readonly label: string
    /** Whether the credential can be tried. */
    readonly isTestable: boolean
    readonly isRenewable: boolean
  }[]
  readonly person: string
  readonly action: string
  readonly token: string
  /** What was just done. */
  readonly done?: string | undefined
}

/** What a test showed. */
export const testedText = (label: string, outcome: keyof typeof TESTED): string => TESTED[outcome](label)

const TESTED: Readonly<Record<TestOutcome | 'unavailable', (label: string) => string>> = {
  accepted: (label) => `${label} accepts this connection.`,
  rejected: (label) => `${label} does not accept this connection any more. Renew it.`,
  unsupported: (label) => `${label} offers no way to test the connection.`,
  unavailable: (label) => `${label} could not be reached. The connection was not changed; try again in a moment.`,
}

/** The connection was deleted here; the outcome at the provider, the worst of several. */
export function disconnectedText(label: string, outcomes: readonly (RevocationOutcome | 'nothing')[]): string {
  const done = `${label} was disconnected.`
  if (outcomes.includes('failed'))
    return `${done} The access could not be revoked there: remove it in your account settings at ${label}.`
  if (outcomes.includes('unsupported'))
    return `${done} ${label} offers no revocation here: if you no longer need the access, remove it in your account settings there.`
  return outcomes.includes('revoked') ? `${done} The access was revoked there.` : done
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

/** The connections of one person. */
export function connectionsPage({ connections, person, action, token, done }: ConnectionsPageParts): Reply {
  const rows = connections.map(
    ({ info: one, label, isTestable, isRenewable }) =>
      html`<dt>${label}</dt>
        <dd>
          ${one.account === undefined ? NOTHING : html`<bdi>${one.account}</bdi>`}
          <small
            >${one.isBroken ? 'Ended by the service: connect it again' : 'Connected'} since
            ${dayOf(one.createdAtMs)}</small
          >
          <small>${one.usedAtMs === undefined ? 'Not used yet' : `Last used on ${dayOf(one.usedAtMs)}`}</small>
          <small
            >${one.endsAtMs === Infinity ? 'Valid until you disconnect it' : `Ends on ${dayOf(one.endsAtMs)}`}</small
          >
          ${one.scopes.length === 0 ? NOTHING : html`<small>Access: ${one.scopes.join(', ')}</small>`}
          <form method="post" action="${action}">
            <input type="hidden" name="token" value="${token}" />
            ${isTestable ? html`<button name="test" value="${one.provider}">Test ${label}</button>` : NOTHING}
            ${isRenewable ? html`<button name="renew" value="${one.provider}">Renew ${label}</button>` : NOTHING}
            <button name="disconnect" value="${one.provider}">Disconnect ${label}</button>
          </form>
        </dd>`,
  )
  const body = html`<h1>Your connected accounts</h1>
    <p class="note">You are signed in as <bdi>${person}</bdi>.</p>
    ${done === undefined ? NOTHING : html`<p class="note" role="status">${done}</p>`}
    ${
      rows.length === 0
        ? html`<p>You have connected no account. An application shows a link when it needs one.</p>`
        : html`<dl>${rows}</dl>`
    }`
  return { kind: 'page', status: 200, html: renderPage({ title: 'Connected accounts', body }) }
}

/** Where the person wants to log in; only with several issuers. */
export function issuersPage(path: string, issuers: readonly string[]): Reply {
  const body = html`<h1>Where do you sign in?</h1>
    ${issuers.map(
      (issuer) =>
        html`<p>
          <a class="button" href="${path}?${new URLSearchParams({ issuer }).toString()}">${new URL(issuer).host}</a>
        </p>`,
    )}`
  return { kind: 'page', status: 200, html: renderPage({ title: 'Sign in', body }) }
}
