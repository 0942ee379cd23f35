/** A refusal in OAuth's shape (RFC 6749 §5.2). */
export class OAuthRefusal extends Error {
  readonly status: number
  readonly error: string
  readonly description: string
  readonly headers: Readonly<Record<string, string>>

  constructor(error: string, description: string, options: { status?: number; headers?: Record<string, string> } = {}) {
    super(`${error}: ${description}`)
    this.name = 'OAuthRefusal'
    this.error = error
    this.description = description
    this.status = options.status ?? 400
    this.headers = options.headers ?? {}
  }
}

/** Form parameters, each at most once (RFC 6749 §3.2), but for those that may repeat (RFC 8707 `resource`). */
export interface Form {
  get(name: string): string | undefined
  /** Throws `invalid_request` when it is missing or empty. */
  require(name: string): string
  all(name: string): string[]
}

/** Reads a parsed body as a form; throws `invalid_request` for anything else and for repeated parameters. */
export function formOf(body: unknown): Form {
  if (!(body instanceof URLSearchParams)) {
    throw new OAuthRefusal('invalid_request', 'the body must be application/x-www-form-urlencoded')
  }
  for (const name of new Set(body.keys())) {
    if (name !== 'resource' && body.getAll(name).length > 1) {
      throw new OAuthRefusal('invalid_request', `parameter ${name} is repeated`)
    }
  }
  const get = (name: string) => body.get(name) || undefined
  return {
    get,
    all: (name) => body.getAll(name).filter((value) => value !== ''),
    require(name) {
      const value = get(name)
      if (value === undefined) throw new OAuthRefusal('invalid_request', `parameter ${name} is missing`)
      return value
    },
  }
}
