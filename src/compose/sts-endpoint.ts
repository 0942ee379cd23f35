import { Failure } from '../core/index.ts'
import type { ObtainDeps } from '../obtain/index.ts'

const VARIABLE = 'AWS_ENDPOINT_URL_STS'

/**
 * The STS endpoint settings (decisions §3.5): the option overrides a config's own settings, which override the standard
 * AWS variables. Throws `config_error` for an invalid value.
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
      ...flag('fips', env, 'AWS_USE_FIPS_ENDPOINT'),
      ...flag('dualStack', env, 'AWS_USE_DUALSTACK_ENDPOINT'),
    },
  }
}

function checked(text: string, source: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw new Failure('config_error', { detail: `${source} is not an http(s) URL without credentials` })
  return text
}

/** A Boolean variable, parsed as in the AWS SDKs. */
function flag(name: 'fips' | 'dualStack', env: Readonly<Record<string, string | undefined>>, variable: string) {
  const value = env[variable]
  if (!value) return {}
  if (value !== 'true' && value !== 'false')
    throw new Failure('config_error', { detail: `${variable} is ${JSON.stringify(value)}, expected "true" or "false"` })
  return { [name]: value === 'true' }
}
