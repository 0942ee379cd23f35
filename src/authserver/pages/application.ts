import type { LoginRequest } from '../login/login-request.ts'
import { html, type Markup } from './html.ts'

type Named = LoginRequest['client']

/** Longest name in a heading, in characters; the full name is shown below. */
const MOST_HEADING = 60

const nameOf = ({ name }: Named): string => name ?? 'An application without a name'

/** A client's name, shortened for a sentence. */
export function shortName(client: Named): Markup {
  const characters = Array.from(nameOf(client))
  const text = characters.length <= MOST_HEADING ? nameOf(client) : `${characters.slice(0, MOST_HEADING).join('')}…`
  return html`<bdi>${text}</bdi>`
}

/** The row that identifies a client and states whether its name is verified. */
export function applicationRow(client: Named): Markup {
  const identity =
    client.kind === 'document'
      ? html`<small class="chosen">published at ${client.id}</small>`
      : html`<small><strong>Unverified.</strong> The application chose this name itself.</small>`
  return html`<dt>Application</dt>
    <dd>
      <span class="chosen"><bdi>${nameOf(client)}</bdi></span
      >${identity}
    </dd>`
}
