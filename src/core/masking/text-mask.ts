import { MASK } from './secret-mask.ts'

/** Tokens and keys recognizable by their format, a truncated JWT included. */
const LOOKS =
  /eyJ[\w-]{8,}(?:\.[\w-]*){0,4}|(?:AKIA|ASIA)[A-Z0-9]{12,}|\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|sk-|sk_live_|rk_live_|AIza|ya29\.)[\w-]{10,}|-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g
const SCHEMES = /\b(Bearer|Basic|DPoP)([ +]|%20)+[\w\-.~+/%]{6,}=*/gi
/** Precondition of both patterns; most text has none of these characters. */
const MAY_LOOK =
  /eyJ|A[KS]IA|gh[pousr]_|github_pat_|glpat-|xox|sk[-_]|rk_|AIza|ya29|PRIVATE KEY|(?:[Bb]earer|[Bb]asic|BEARER|BASIC|[Dd][Pp][Oo][Pp])(?! \[masked)[ +%]/
/** Shorter text can't hold a token. */
const MIN_LOOK = 11

/** Masks text that has the format of a token or key. */
export function maskLooks(text: string): string {
  if (text.length < MIN_LOOK || !MAY_LOOK.test(text)) return text
  return text.replace(SCHEMES, (_, scheme: string) => `${scheme} ${MASK}`).replace(LOOKS, MASK)
}

const SECRET_NAME =
  'access_?token|refresh_?token|id_?token|subject_?token|actor_?token|auth_?token|bearer_?token|session_?token|security_?token|client_?secret|client_?assertion|secret_?access_?key|private_?key|api_?key|apikey|x-api-key|authorization|proxy-authorization|set-cookie|cookie|password|passwd|passphrase|secret|token|credential|credentials|code_verifier'
/** A JSON field with such a name, also inside a JSON string; its value may be truncated. */
const SECRET_MEMBER = new RegExp(
  `("(?:[\\w.-]*[_.-])?(?:${SECRET_NAME})"\\s*:\\s*)("(?:[^"\\\\]|\\\\.)*(?:"|\\\\?$)|\\[[^\\]]*\\]?)`,
  'gi',
)
const ESCAPED_MEMBER = new RegExp(
  `(\\\\{1,8}"(?:[\\w.-]*[_.-])?(?:${SECRET_NAME})\\\\{1,8}"\\s*:\\s*\\\\{1,8}")((?:[^"\\\\]|\\\\[^"])*)`,
  'gi',
)
/** A pair of a form or a query in running text. */
const SECRET_PAIR = new RegExp(`((?:^|[?&;\\s"'])(?:[\\w.-]*[_.-])?(?:${SECRET_NAME})=)([^&\\s"'\\\\<>]+)`, 'gim')

/** Substrings of which each name has at least one. */
const MAY_NAME = /token|secret|passw|passphrase|credential|authorization|cookie|key|assertion|verifier/i

/** Masks values in a body whose names mark them as secret, and everything with the format of a token. */
export function maskBody(text: string): string {
  if (!MAY_NAME.test(text)) return maskLooks(text)
  return maskLooks(
    text
      .replace(SECRET_MEMBER, (_, name: string) => `${name}"${MASK}"`)
      .replace(ESCAPED_MEMBER, (_, name: string) => `${name}${MASK}`)
      .replace(SECRET_PAIR, (_, name: string) => `${name}${MASK}`),
  )
}
