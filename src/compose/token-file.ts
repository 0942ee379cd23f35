import { CredentialRefusal, type EndpointCredentials, Secret } from '../core/index.ts'
import { fileProblem, readBounded } from '../files/index.ts'

const MAX_BYTES = 64 * 1024
/** b64token of RFC 6750 §2.1. */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/

/** No token, for servers that require none. `why` is the user's message if the server does require one, a sentence. */
export const noCredentials = (why = 'The MCP server requires an access token.'): EndpointCredentials => ({
  current: () => Promise.resolve(undefined),
  refused: () => Promise.reject(new CredentialRefusal('missing_token', why)),
})

/**
 * The access token in a file, read for each request, so that a renewal needs no restart. An unreadable file or
 * invalid token is `CredentialRefusal` missing_token.
 */
export function tokenInFile(file: string): EndpointCredentials {
  const read = (): Secret => {
    let text
    try {
      text = readBounded(file, MAX_BYTES).toString('utf8').trim()
    } catch (error) {
      throw new CredentialRefusal('missing_token', `The access token file ${file} is ${fileProblem(error)}.`)
    }
    const token = text.replace(/^bearer +/i, '')
    if (!TOKEN.test(token))
      throw new CredentialRefusal('missing_token', `The access token file ${file} contains no access token.`)
    return new Secret(token)
  }
  return {
    current: async () => Promise.resolve(read()),
    refused: async (used, challenge) => {
      if (used === undefined || !read().equals(used)) return Promise.resolve(true)
      const lacks = /\berror="?insufficient_scope\b/.test(challenge ?? '')
      throw lacks
        ? new CredentialRefusal(
            'insufficient_scope',
            `The access token in ${file} lacks a scope that the MCP server requires${scopesIn(challenge ?? '')}.`,
          )
        : new CredentialRefusal('invalid_token', `The MCP server does not accept the access token in ${file}.`)
    },
  }
}

/** The scopes of a challenge, restricted to valid scope characters (RFC 6749 §3.3). */
function scopesIn(challenge: string): string {
  const scope = /\bscope="([\x21\x23-\x5b\x5d-\x7e ]{1,500})"/.exec(challenge)?.[1]
  return scope === undefined ? '' : ` (${scope})`
}
