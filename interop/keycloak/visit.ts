import { request as secureRequest, type RequestOptions } from 'node:https'

/** An answer, read to its end. */
export interface Page {
  readonly status: number
  readonly location: string | undefined
  readonly cookies: readonly string[]
  readonly body: string
}

/** GETs a page, or POSTs a form to it. */
export function visit(url: string, options: RequestOptions, form?: string): Promise<Page> {
  return new Promise((resolve, reject) => {
    const request = secureRequest(url, { ...options, method: form === undefined ? 'GET' : 'POST' }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const { statusCode: status = 0, headers } = response
        const body = Buffer.concat(chunks).toString('utf8')
        resolve({ status, location: headers.location, cookies: headers['set-cookie'] ?? [], body })
      })
    })
    request.on('error', reject)
    request.end(form)
  })
}

/** A token of alice by her password; what the endpoint says instead, as an error. */
export async function tokenByPassword(realm: string, ca: Buffer, clientId: string, scope: string): Promise<string> {
  const form = new URLSearchParams({ grant_type: 'password', client_id: clientId, username: 'alice', scope })
  form.set('password', 'alice')
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const { status, body } = await visit(`${realm}/protocol/openid-connect/token`, { ca, headers }, form.toString())
  if (status !== 200) throw new Error(`Keycloak gives alice no token (${status}): ${body.slice(0, 300)}`)
  return (JSON.parse(body) as { access_token: string }).access_token
}
