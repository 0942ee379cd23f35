import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A response of the double: a document, or a failure. */
export interface StsAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly delayMs?: number
  readonly reset?: boolean
}

export interface StsDouble {
  readonly url: string
  /** The forms that arrived, oldest first. */
  readonly calls: URLSearchParams[]
  /** Headers of the requests, oldest first. */
  readonly headers: IncomingMessage['headers'][]
  answer: (form: URLSearchParams) => StsAnswer
  close(): Promise<void>
}

const NAMESPACE = 'https://sts.amazonaws.com/doc/2011-06-15/'

/** The query protocol's answer with credentials. */
export function credentialsXml(options: {
  readonly accessKeyId?: string
  readonly secretAccessKey?: string
  readonly sessionToken?: string
  readonly expiration?: string
  /** Default AssumeRoleWithWebIdentity. */
  readonly action?: string
}): string {
  const { accessKeyId = 'ASIATESTTESTTEST0001', secretAccessKey = 'secret/+=', sessionToken = 'session/+=' } = options
  const expiration = options.expiration ?? '2029-06-01T01:00:00Z'
  const { action = 'AssumeRoleWithWebIdentity' } = options
  return `<${action}Response xmlns="${NAMESPACE}"><${action}Result>
    <AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/r/s</Arn><AssumedRoleId>A:s</AssumedRoleId></AssumedRoleUser>
    <Credentials><AccessKeyId>${accessKeyId}</AccessKeyId><SecretAccessKey>${secretAccessKey}</SecretAccessKey>
    <SessionToken>${sessionToken}</SessionToken><Expiration>${expiration}</Expiration></Credentials>
    </${action}Result><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></${action}Response>`
}

/** The query protocol's error document. */
export const errorXml = (code: string, message = 'a text that must not be repeated'): string =>
  `<ErrorResponse xmlns="${NAMESPACE}"><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error><RequestId>r</RequestId></ErrorResponse>`

/** A server that speaks just enough of the AWS query protocol, on loopback. */
export async function startStsDouble(): Promise<StsDouble> {
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
      const form = new URLSearchParams(Buffer.concat(chunks).toString('utf8'))
      double.calls.push(form)
      double.headers.push(request.headers)
      const { status = 200, headers = {}, body = '', delayMs = 0, reset = false } = double.answer(form)
      if (reset) {
        request.socket.destroy()
        return
      }
      if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs))
      response.writeHead(status, { 'content-type': 'text/xml', ...headers }).end(body)
    })()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const double: StsDouble = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: [],
    headers: [],
    answer: () => ({ body: credentialsXml({}) }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return double
}
