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

/** The caller in a form: its token, or else the lab user. */
export function whoOf({ user, token }) {
  const own = token.trim().replace(/^bearer +/i, '')
  if (own !== '') return { token: own }
  return user === '' ? {} : { user }
}
