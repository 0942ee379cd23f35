const NAMESPACE = 'https://sts.amazonaws.com/doc/2011-06-15/'

/** A refusal as STS says it. */
export class StsRefusal extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.name = 'StsRefusal'
    this.status = status
    this.code = code
  }
}

/** Element content by name; nested objects are nested elements. */
export interface Elements {
  readonly [name: string]: string | number | Elements
}

const escape = (text: string) => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)

function render(elements: Elements): string {
  return Object.entries(elements)
    .map(([name, value]) => `<${name}>${typeof value === 'object' ? render(value) : escape(String(value))}</${name}>`)
    .join('')
}

/** The answer document of an action (AWS query protocol). */
export function renderResult(action: string, result: Elements, requestId: string): string {
  const body = render({ [`${action}Result`]: result, ResponseMetadata: { RequestId: requestId } })
  return `<${action}Response xmlns="${NAMESPACE}">${body}</${action}Response>`
}

/** The error document of the AWS query protocol. */
export function renderError(refusal: StsRefusal, requestId: string): string {
  const type = refusal.status < 500 ? 'Sender' : 'Receiver'
  const body = render({ Error: { Type: type, Code: refusal.code, Message: refusal.message }, RequestId: requestId })
  return `<ErrorResponse xmlns="${NAMESPACE}">${body}</ErrorResponse>`
}
