import { html } from './html.js'

/** Whom of the users of the lab a request is sent as; nothing where there is no lab. */
export function LabUser({ users, user, onChange }) {
  if (!users) return null
  return html`<label
    ><span>Lab user</span>
    <select name="user" value=${user} onChange=${onChange}>
      <option value="">none</option>
      ${users.map((name) => html`<option key=${name} value=${name} selected=${name === user}>${name}</option>`)}
    </select>
  </label>`
}

/** Who a form says: the token that is written in it before the user of the lab. */
export function whoOf({ user, token }) {
  const own = token.trim().replace(/^bearer +/i, '')
  if (own !== '') return { token: own }
  return user === '' ? {} : { user }
}
