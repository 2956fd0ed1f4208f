// Is an event right? Two APIs write the same events: the old one takes nearly everything, the new one is strict about what
// is new and lets little change afterwards. Paths are those of the stored form, as in Kubernetes.
import { invalid, required } from '../field-errors.ts'
import type { FieldError } from '../field-errors.ts'
import type { Event, EventsEvent, ObjectReference } from '../generated/types.ts'
import { toStoredEvent } from '../kinds/event-views.ts'
import { isQualifiedName } from './formats.ts'
import { checked, sameData, unchanged } from './metadata.ts'
import type { KindRules } from '../kinds/define-kind.ts'

export const eventRules: KindRules<Event> = { whole: (event) => validateStored(event, 'reportingComponent') }

export const newEventRules: KindRules<EventsEvent> = {
  whole: (event) => validateStored(toStoredEvent(event), 'reportingController'),
  created: validateNewEvent,
  change: validateNewEventUpdate,
}

/** An event lives where its object lives; events of cluster objects live in default. */
function validateStored(event: Event, controllerField: string): readonly FieldError[] {
  const { metadata, involvedObject, reportingComponent: controller = '' } = event
  const [home, namespace] = [metadata.namespace ?? '', involvedObject?.namespace ?? '']
  if (!event.eventTime) {
    const fits = namespace === '' ? ['', 'default'].includes(home) : namespace === home
    return fits ? [] : [elsewhere(namespace)]
  }
  const fits = namespace !== '' || ['default', 'kube-system'].includes(home)
  return [
    ...(fits ? [] : [elsewhere(namespace)]),
    ...(controller === '' ? [required(controllerField)] : []),
    ...checked(controllerField, controller, isQualifiedName),
    ...word(event.reportingInstance ?? '', 'reportingInstance'),
    ...word(event.action ?? '', 'action'),
    ...word(event.reason ?? '', 'reason'),
    ...atMost(event.message ?? '', 1024, 'message'),
  ]
}

function elsewhere(namespace: string): FieldError {
  return invalid('involvedObject.namespace', namespace, 'does not match event.namespace')
}

function word(text: string, path: string): readonly FieldError[] {
  return text === '' ? [required(path)] : atMost(text, 128, path)
}

function atMost(text: string, length: number, path: string): readonly FieldError[] {
  return text.length > length ? [invalid(path, '', `can have at most ${length} characters`)] : []
}

/** What the new API asks of a new event: the members of old are for old events. */
function validateNewEvent(event: EventsEvent): readonly FieldError[] {
  const { type, eventTime, deprecatedSource: source } = event
  const old = [
    ['firstTimestamp', event.deprecatedFirstTimestamp],
    ['lastTimestamp', event.deprecatedLastTimestamp],
    ['count', event.deprecatedCount],
    ['source', source?.component || source?.host],
  ] as const
  return [
    ...validateSeries(event),
    ...(eventTime ? [] : [required('eventTime')]),
    ...(type === 'Normal' || type === 'Warning' ? [] : [invalid('type', '', `has invalid value: ${type ?? ''}`)]),
    ...old.flatMap(([field, value]) => (value ? [invalid(field, '', 'needs to be unset')] : [])),
  ]
}

function validateSeries({ series }: EventsEvent): readonly FieldError[] {
  if (series === undefined) return []
  return [
    ...(series.count < 2 ? [invalid('series.count', '', 'should be at least 2')] : []),
    ...(series.lastObservedTime ? [] : [required('series.lastObservedTime')]),
  ]
}

/** Only the series goes on; what happened has happened. */
function validateNewEventUpdate(next: EventsEvent, previous: EventsEvent): readonly FieldError[] {
  const frozen = [
    ['message', next.note ?? '', previous.note ?? ''],
    ['source', next.deprecatedSource, previous.deprecatedSource],
    ['firstTimestamp', next.deprecatedFirstTimestamp, previous.deprecatedFirstTimestamp],
    ['lastTimestamp', next.deprecatedLastTimestamp, previous.deprecatedLastTimestamp],
    ['count', next.deprecatedCount ?? 0, previous.deprecatedCount ?? 0],
    // Kubernetes asks for the reason twice.
    ['reason', next.reason ?? '', previous.reason ?? ''],
    ['type', next.type ?? '', previous.type ?? ''],
    ['eventTime', next.eventTime, previous.eventTime],
    ['action', next.action ?? '', previous.action ?? ''],
    ['related', next.related, previous.related],
    ['reportingController', next.reportingController ?? '', previous.reportingController ?? ''],
    ['reportingInstance', next.reportingInstance ?? '', previous.reportingInstance ?? ''],
  ] as const
  return [
    ...(sameData(next.series, previous.series) ? [] : validateSeries(next)),
    ...(sameData(next.regarding, previous.regarding)
      ? []
      : unchanged(goReference(next.regarding), goReference(previous.regarding), 'involvedObject')),
    ...unchanged(next.reason ?? '', previous.reason ?? '', 'reason'),
    ...frozen.flatMap(([field, wanted, before]) => unchanged(wanted, before, field)),
  ]
}

/** As Go prints its internal type in the error. */
function goReference(reference: ObjectReference = {}) {
  return {
    Kind: reference.kind ?? '',
    Namespace: reference.namespace ?? '',
    Name: reference.name ?? '',
    UID: reference.uid ?? '',
    APIVersion: reference.apiVersion ?? '',
    ResourceVersion: reference.resourceVersion ?? '',
    FieldPath: reference.fieldPath ?? '',
  }
}
