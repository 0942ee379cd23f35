/** A policy that cannot be expressed exactly as rules. */
export class CedarError extends Error {
  override readonly name = 'CedarError'
  /** Index of its text, if several were converted. */
  readonly policy: number
  readonly line: number
  readonly column: number
  constructor(policy: number, { line, column }: Position, reason: string) {
    super(reason)
    this.policy = policy
    this.line = line
    this.column = column
  }
}

interface Position {
  readonly line: number
  readonly column: number
}

/** A condition on one claim. */
export interface Term {
  readonly claim: string
  readonly is: 'equal' | 'contains' | 'oneOf'
  readonly values: readonly string[]
}

export type Target = 'tools' | 'prompts' | 'resources'

export interface Policy {
  readonly effect: 'permit' | 'forbid'
  /** Patterns of the requests in its scope; empty for a policy that matches no request. */
  readonly scope: Partial<Record<Target, string[]>>
  readonly terms: readonly Term[]
}

const ACTIONS: Readonly<Record<string, Target | 'list'>> = {
  call_tool: 'tools',
  get_prompt: 'prompts',
  read_resource: 'resources',
  list_tools: 'list',
  list_prompts: 'list',
  list_resources: 'list',
}
const RESOURCES: Readonly<Record<string, Target>> = { Tool: 'tools', Prompt: 'prompts', Resource: 'resources' }
export const TARGETS: readonly Target[] = ['tools', 'prompts', 'resources']

export const MAX_POLICIES = 200
export const TOO_MANY = `there are more than ${MAX_POLICIES} policies`
export const START = { line: 1, column: 1 }
const MAX_TERMS = 50

interface Token extends Position {
  readonly kind: 'word' | 'string' | 'sign' | 'end'
  /** Of a string, its value. */
  readonly text: string
}

const TOKEN =
  /(?<space>(?:\s|\/\/[^\n]*)+)|(?<word>[A-Za-z_]\w*)|"(?<string>(?:[^"\\\p{Cc}]|\\["\\])*)"|(?<sign>==|!=|<=|>=|&&|\|\||::|[^\s])/uy

/** Throws at a string with a control character, or an escape other than `\"` and `\\`. */
function tokensOf(text: string, policy: number): readonly Token[] {
  const tokens: Token[] = []
  const scan = new RegExp(TOKEN)
  let line = 1
  let lineStart = 0
  while (scan.lastIndex < text.length) {
    const start = scan.lastIndex
    const position = { line, column: start - lineStart + 1 }
    const groups = scan.exec(text)?.groups ?? {}
    const { space, word, string, sign } = groups
    if (space !== undefined) {
      for (let at = text.indexOf('\n', start); at !== -1 && at < scan.lastIndex; at = text.indexOf('\n', at + 1)) {
        line += 1
        lineStart = at + 1
      }
    } else if (word !== undefined) tokens.push({ ...position, kind: 'word', text: word })
    else if (string !== undefined)
      tokens.push({ ...position, kind: 'string', text: string.replace(/\\(["\\])/g, '$1') })
    else if (sign === '"')
      throw new CedarError(
        policy,
        position,
        'the string does not end, or has a control character or another escape than \\" and \\\\',
      )
    else tokens.push({ ...position, kind: 'sign', text: sign ?? '' })
  }
  tokens.push({ line, column: text.length - lineStart + 1, kind: 'end', text: 'the end of the policies' })
  return tokens
}

/** Reasons for what policies may have and rules cannot express exactly. */
const REASONS: Readonly<Record<string, string>> = {
  unless: '"unless" is not converted; write the opposite condition with "when"',
  like: '"like" is not converted: its patterns differ from those of rules',
  has: '"has" is not converted; without it, a missing claim denies',
  in: '"in" is not converted: it depends on entities and their hierarchy',
  is: '"is" is not converted',
  if: '"if" is not converted',
  '?': 'templates are not converted',
  '@': 'annotations are not converted; remove them',
  '||': '"||" is not converted; write two policies',
  '!': 'negations are not converted',
  '!=': '"!=" is not converted',
  '(': 'parentheses are not converted here',
  context: '"context" is not converted; conditions may use principal.claim_…',
  resource: 'attributes of the resource are not converted; conditions may use principal.claim_…',
  action: 'conditions on the action are not converted; conditions may use principal.claim_…',
}

/** Parses the policies of the text with this index. Throws `CedarError` for everything outside the subset. */
export const parsePolicies = (text: string, index: number): readonly Policy[] => new Parser(text, index).policies()

/** Recursive descent over the subset. */
class Parser {
  readonly #index: number
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(text: string, index: number) {
    this.#index = index
    this.#tokens = tokensOf(text, index)
  }

  policies(): readonly Policy[] {
    const policies: Policy[] = []
    while (this.#next.kind !== 'end') {
      if (policies.length === MAX_POLICIES) throw this.#error(TOO_MANY)
      policies.push(this.#policy())
    }
    if (policies.length === 0) throw this.#error('there is no policy')
    return policies
  }

  #policy(): Policy {
    const effect = this.#next.text
    if (this.#next.kind !== 'word' || (effect !== 'permit' && effect !== 'forbid'))
      throw this.#unexpected('"permit" or "forbid"')
    this.#at += 1
    this.#sign('(')
    this.#word('principal')
    this.#sign(',', 'principals are not restricted by rules; use a condition on a claim')
    const action = this.#action()
    this.#sign(',')
    const resource = this.#resource()
    this.#sign(')')
    const terms = this.#isWord('when') ? this.#when() : []
    this.#sign(';')
    const targets = TARGETS.filter((target) => (action ?? target) === target && (resource?.target ?? target) === target)
    return { effect, terms, scope: Object.fromEntries(targets.map((target) => [target, [resource?.name ?? '*']])) }
  }

  #action(): Target | 'list' | undefined {
    this.#word('action')
    if (!this.#takes('==')) return undefined
    this.#word('Action')
    this.#sign('::')
    const { text, ...at } = this.#string('the name of an action')
    const action = Object.hasOwn(ACTIONS, text) ? ACTIONS[text] : undefined
    if (action === undefined)
      throw new CedarError(
        this.#index,
        at,
        `unknown action ${JSON.stringify(text.slice(0, 64))}; expected one of ${Object.keys(ACTIONS).join(', ')}`,
      )
    return action
  }

  #resource(): { readonly target: Target; readonly name: string } | undefined {
    this.#word('resource')
    if (!this.#takes('==')) return undefined
    const type = this.#next
    const target = Object.hasOwn(RESOURCES, type.text) ? RESOURCES[type.text] : undefined
    if (type.kind !== 'word' || target === undefined) throw this.#unexpected(Object.keys(RESOURCES).join(', '))
    this.#at += 1
    this.#sign('::')
    const { text: name, ...at } = this.#string('a name')
    if (target === 'resources')
      throw new CedarError(
        this.#index,
        at,
        'a name of a resource stands for several URIs, because ToolHive replaces : / . and others by _',
      )
    if (name === '' || name.length > 1024 || name.includes('*'))
      throw new CedarError(
        this.#index,
        at,
        'the name is empty, longer than 1024 characters, or has a *, which is a pattern in rules',
      )
    return { target, name }
  }

  #when(): readonly Term[] {
    this.#word('when')
    this.#sign('{')
    const terms = [this.#term()]
    while (this.#takes('&&')) {
      if (terms.length === MAX_TERMS) throw this.#error(`the condition has more than ${MAX_TERMS} parts`)
      terms.push(this.#term())
    }
    this.#sign('}')
    return terms
  }

  #term(): Term {
    if (this.#takes('[')) {
      const values = [this.#string('a string').text]
      while (this.#takes(',')) values.push(this.#string('a string').text)
      this.#sign(']')
      this.#sign('.')
      this.#word('contains')
      this.#sign('(')
      const claim = this.#claim()
      this.#sign(')')
      return { claim, is: 'oneOf', values }
    }
    const claim = this.#claim()
    if (this.#takes('==')) return { claim, is: 'equal', values: [this.#string('a string').text] }
    this.#sign('.')
    this.#word('contains')
    this.#sign('(')
    const { text } = this.#string('a string')
    this.#sign(')')
    return { claim, is: 'contains', values: [text] }
  }

  /** `principal.claim_x` or `principal["claim_x"]`. */
  #claim(): string {
    this.#word('principal')
    const isIndex = this.#takes('[')
    if (!isIndex) this.#sign('.')
    const { text, kind, ...at } = this.#next
    if (kind !== (isIndex ? 'string' : 'word') || !/^claim_./su.test(text))
      throw new CedarError(
        this.#index,
        at,
        'conditions may use attributes of the principal whose name starts with claim_ only',
      )
    this.#at += 1
    if (isIndex) this.#sign(']')
    return text.slice('claim_'.length)
  }

  get #next(): Token {
    const token = this.#tokens[this.#at] ?? this.#tokens.at(-1)
    if (token === undefined) throw new CedarError(this.#index, START, 'there is no policy')
    return token
  }

  #isWord(text: string): boolean {
    return this.#next.kind === 'word' && this.#next.text === text
  }

  #word(text: string): void {
    if (!this.#isWord(text)) throw this.#unexpected(`"${text}"`)
    this.#at += 1
  }

  #takes(text: string): boolean {
    const isIt = this.#next.kind === 'sign' && this.#next.text === text
    if (isIt) this.#at += 1
    return isIt
  }

  #sign(text: string, reason?: string): void {
    if (!this.#takes(text)) throw reason === undefined ? this.#unexpected(`"${text}"`) : this.#error(reason)
  }

  #string(what: string): Token {
    const token = this.#next
    if (token.kind !== 'string') throw this.#unexpected(what)
    this.#at += 1
    return token
  }

  #unexpected(expected: string): CedarError {
    const { kind, text } = this.#next
    const reason = kind !== 'string' && Object.hasOwn(REASONS, text) ? REASONS[text] : undefined
    const found = kind === 'end' ? text : JSON.stringify(text.slice(0, 40))
    return this.#error(reason ?? `found ${found}; expected ${expected}`)
  }

  #error(reason: string): CedarError {
    return new CedarError(this.#index, this.#next, reason)
  }
}
