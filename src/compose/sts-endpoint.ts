import { Failure } from '../core/index.ts'
import type { ObtainDeps } from '../obtain/index.ts'

const VARIABLE = 'AWS_ENDPOINT_URL_STS'

/**
 * Where STS is when not where the region says (decisions §3.5): what was asked for at start goes before a config's own
 * `stsEndpoint`, and the variable that all AWS tools read goes after it. Throws `config_error` for what is no http URL.
 */
export function stsEndpoints(
  option: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Pick<ObtainDeps, 'sts'> {
  const ambient = env[VARIABLE] || undefined
  return {
    sts: {
      ...(option === undefined ? {} : { endpoint: checked(option, '--sts-endpoint') }),
      ...(ambient === undefined ? {} : { ambientEndpoint: checked(ambient, VARIABLE) }),
    },
  }
}

function checked(text: string, source: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw new Failure('config_error', { detail: `${source} is not an http(s) URL without credentials` })
  return text
}
