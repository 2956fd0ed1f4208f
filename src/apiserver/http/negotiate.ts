// In which form does the client want its answer? JSON, YAML or protobuf; whole objects, tables or metadata only.
import type { Typed } from '../../api/meta.ts'
import { notAcceptable, StatusError } from '../../api/status-error.ts'
import { protobufContentType } from '../protobuf/decode.ts'
import { hasProtobuf } from '../protobuf/encode.ts'
import { acceptedTypes } from './codec.ts'

type Media = 'json' | 'yaml' | 'protobuf'

export interface Form {
  readonly media: Media
  readonly as: 'object' | 'table' | 'metadata'
  /** The partial metadata was asked for a list. */
  readonly list?: boolean
  /** The version of meta.k8s.io that tables and partial metadata come in. */
  readonly metaVersion: 'meta.k8s.io/v1' | 'meta.k8s.io/v1beta1'
}

/** What there is to choose from: kinds without field numbers have no protobuf form, but their metadata have one. */
export interface Offer {
  readonly protobuf: boolean
}

export function offerOf({ apiVersion, kind }: Pick<Typed, 'apiVersion' | 'kind'>): Offer {
  return { protobuf: hasProtobuf(apiVersion, kind) }
}

const plainForm: Form = { media: 'json', as: 'object', metaVersion: 'meta.k8s.io/v1' }

/** The form that the client likes best of those we can give; the order of the header decides between equals, as in Kubernetes. */
export function negotiate(accept: string | undefined, offer: Offer): Form {
  if (accept === undefined || accept.trim() === '') return plainForm
  const choices = choicesOf(accept)
  for (const choice of choices) {
    const form = formOf(choice, offer)
    if (form !== undefined) return form
  }
  if (!offer.protobuf) throw notAcceptable(acceptedTypes.filter((type) => type !== protobufContentType))
  // A type we speak, in a shape we do not know.
  if (choices.some(({ type }) => mediaOf(type) !== undefined)) throw notAcceptable(acceptedTypes)
  throw new StatusError(406, 'NotAcceptable', '406: Not Acceptable', {})
}

/** How a Status is written: what is wrong is told even to clients whose wishes we cannot fulfil. */
export function statusForm(accept: string | undefined, offer: Offer): Form {
  const choice = choicesOf(accept ?? '').find(
    ({ type }) => mediaOf(type) !== undefined && isOffered(mediaOf(type), offer),
  )
  return { ...plainForm, media: mediaOf(choice?.type ?? '') ?? 'json' }
}

interface Choice {
  /** In lower case. */
  readonly type: string
  readonly parameters: ReadonlyMap<string, string>
  readonly quality: number
}

/** The best first; those with quality 0 are not wanted at all. */
function choicesOf(accept: string): readonly Choice[] {
  const choices = accept.split(',').slice(0, 50).map(choiceOf)
  return choices.filter(({ quality }) => quality > 0).sort((a, b) => b.quality - a.quality || stars(a) - stars(b))
}

function choiceOf(text: string): Choice {
  const [type = '', ...rest] = text.split(';').map((part) => part.trim())
  const parameters = new Map(rest.map((parameter) => splitOnce(parameter)))
  const quality = Number(parameters.get('q') ?? 1)
  return { type: type.toLowerCase(), parameters, quality: Number.isNaN(quality) ? 1 : quality }
}

function stars({ type }: Choice): number {
  return type.split('*').length
}

function formOf({ type, parameters }: Choice, offer: Offer): Form | undefined {
  const media = mediaOf(type)
  if (media === undefined) return undefined
  const as = parameters.get('as')
  if (as === undefined) return isOffered(media, offer) ? { ...plainForm, media } : undefined
  if (parameters.get('g') !== 'meta.k8s.io') return undefined
  const version = parameters.get('v') ?? 'v1'
  if (version !== 'v1' && version !== 'v1beta1') return undefined
  const metaVersion = `meta.k8s.io/${version}` as const
  // Cells of a table may be anything: they have no protobuf form.
  if (as === 'Table') return media === 'protobuf' ? undefined : { media, as: 'table', metaVersion }
  if (as === 'PartialObjectMetadata') return { media, as: 'metadata', metaVersion }
  if (as === 'PartialObjectMetadataList') return { media, as: 'metadata', list: true, metaVersion }
  return undefined
}

function isOffered(media: Media | undefined, offer: Offer): boolean {
  return media !== 'protobuf' || offer.protobuf
}

function mediaOf(type: string): Media | undefined {
  if (type === 'application/json' || type === '*/*' || type === 'application/*') return 'json'
  if (type === 'application/yaml') return 'yaml'
  return type === protobufContentType ? 'protobuf' : undefined
}

function splitOnce(text: string): [string, string] {
  const at = text.indexOf('=')
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}
