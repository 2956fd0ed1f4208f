// What did the driver say? Causes named by the status of a CSI call, the same for every call.
import type { CauseTable } from './cause.ts'

export const driverCauses = {
  driverNotOnNode: {
    title: 'The driver is not registered on the node',
    sentence: 'driver {driver} is not registered on node {node}',
    meaning:
      'The driver is not running there, or its socket was not registered. Without it nothing can be mounted or unmounted.',
    ends: 'The driver registers; waiting pods continue at once.',
    hints: [
      ['hawser get csinode {node} -o yaml', 'see which drivers the node has'],
      ['hawser driver check {socket}', 'ask the driver directly'],
      ['hawser doctor', 'on the node: sockets'],
    ],
  },
  driverAbsent: {
    title: 'The driver is not registered on any node',
    sentence: 'driver {driver} must {detail}, but it is not registered on any node',
    meaning:
      'Only the driver of the volume can do this. It is not running, its socket is not registered, or it runs elsewhere with its own sidecars.',
    ends: 'The driver registers; the work continues automatically.',
    hints: [
      ['hawser get csinode -o yaml', 'see which drivers are registered on which node'],
      ['hawser up --csi-driver {driver}=SOCKET', 'start with this driver'],
    ],
  },
  driverUnavailable: {
    title: 'The driver cannot be reached',
    sentence: 'driver {driver} does not answer[ at {socket}][: {detail}]',
    meaning:
      'No call reaches the driver: it is not running and there is no socket, or only the file of an earlier socket is left, or the socket may not be opened. It is unknown whether a call that was under way had an effect, so the same call is repeated.',
    ends: 'The driver is available again; what waits for it continues within a second.',
    hints: [
      ['hawser driver check {socket}', 'ask it directly, once it is started again'],
      ['hawser doctor', 'on the node: sockets and processes'],
    ],
  },
  driverSaysUnavailable: {
    title: 'The driver says that it is unavailable',
    sentence: 'driver {driver} is running and answers that it is unavailable[: {detail}]',
    meaning:
      'The driver was reached, and its own answer was UNAVAILABLE: often its storage is away or it is still starting. It is unknown whether the call had an effect, so the same call is repeated.',
    ends: 'A retry succeeds.',
    hints: [
      ['hawser driver check {socket}', 'ask it directly'],
      ['hawser events', 'all errors so far'],
    ],
  },
  driverSilent: {
    title: 'The driver does not answer its first question',
    sentence: 'driver {driver} accepts calls[ at {socket}] but does not answer Probe',
    meaning:
      'A driver is asked whether it is ready (Probe) before anything else. This one is running and says nothing: it is still starting, or it is stuck. It is asked again every second.',
    ends: 'The driver answers.',
    hints: [
      ['hawser driver check {socket}', 'ask it directly'],
      ['hawser doctor', 'on the node: sockets and processes'],
    ],
  },
  driverUnready: {
    title: 'The driver is not ready',
    sentence: 'driver {driver}[ at {socket}] is not ready[: {detail}]',
    meaning:
      'The driver answers Probe with "not ready", or refuses to say what it can do. Nothing is asked of it until that changes.',
    ends: 'The driver reports that it is ready.',
    hints: [
      ['hawser driver check {socket}', 'ask it directly'],
      ['hawser doctor', 'on the node: sockets and processes'],
    ],
  },
  callHangs: {
    title: 'A call to the driver hangs',
    sentence: 'driver {driver} has not answered[ {call}] since the time shown; the call is still running',
    meaning:
      'The driver was called and has not answered for more than ten seconds. Each call has a deadline (controller calls 10 to 60 seconds, calls on the node two minutes); after it the call is repeated.',
    ends: 'The driver answers, or the deadline passes and the call is repeated.',
    hints: [
      ['hawser driver check {socket}', 'see whether it answers other calls'],
      ['hawser get operations', 'see which calls run, and since when'],
    ],
  },
  driverTimeout: {
    title: 'The driver did not answer in time',
    sentence: 'driver {driver} did not answer[ {call}] in time, and has not since the time shown',
    meaning:
      'DEADLINE_EXCEEDED or CANCELLED: it is unknown whether the call had an effect, so the same call is repeated until there is an answer.',
    ends: 'A later call is answered.',
    hints: [['hawser get operations', 'see how often it was tried']],
  },
  driverBusy: {
    title: 'The driver is still busy with an earlier call',
    sentence: 'driver {driver} reports that another operation on this volume is in progress (ABORTED)',
    meaning: 'An earlier call, perhaps one that timed out here, is still running in the driver.',
    ends: 'The driver finishes it.',
    hints: [['hawser get operations', 'see how often it was tried']],
  },
  outOfCapacity: {
    title: 'The storage is full',
    sentence: 'driver {driver} has no capacity for the volume[ of claim {claim}][: {detail}]',
    meaning:
      'The pool, a quota or a limit of volumes is exhausted. With WaitForFirstConsumer another node may be chosen automatically.',
    ends: 'Space is freed, or another node is chosen.',
    hints: [
      ['hawser delete pvc {claim}', 'then create it again, smaller or for another node'],
      ['hawser get csistoragecapacities -A', 'free space as reported by the driver'],
      ['hawser get pv', 'Released volumes with policy Retain use space, too'],
    ],
  },
  badParameters: {
    title: 'The driver rejects the request',
    sentence: 'driver {driver} rejects the request as invalid (INVALID_ARGUMENT)',
    meaning:
      'The driver does not accept a parameter of the class, an attribute of the volume, the access mode or the filesystem type. A retry does not help, so retries are slow.',
    ends: 'The class or the volume is corrected.',
    hints: [['hawser get storageclass {class} -o yaml', 'see the parameters of the class']],
  },
  outOfRange: {
    title: 'The driver cannot provide that size',
    sentence: 'driver {driver} cannot provide the requested size[ {size}][: {detail}]',
    meaning:
      'The size is too small, too large for what is left, or smaller than the snapshot it is restored from (OUT_OF_RANGE). A volume that was to grow keeps its size and stays usable.',
    ends: 'Request another size; or space is freed.',
    hints: [
      ['hawser volume resize {claim} SIZE', 'if it was to grow: ask for less, but for more than it has'],
      ['hawser delete pvc {claim}', 'if it is new: then create it again with another size'],
      ['hawser describe pvc/{claim}', 'see the requested size'],
    ],
  },
  storageGone: {
    title: 'The driver does not know the volume',
    sentence: 'driver {driver} reports that the storage of volume {volume} does not exist (NOT_FOUND)',
    meaning: 'The storage was deleted outside of Kubernetes, or the volume handle is wrong.',
    ends: 'Nothing, unless the storage is restored.',
    hints: [['hawser get pv {volume} -o yaml', 'see spec.csi.volumeHandle']],
  },
  alreadyExists: {
    title: 'A volume with that name exists with other properties',
    sentence: 'driver {driver} has a volume with that name that does not match the request (ALREADY_EXISTS)',
    meaning:
      'An earlier request with the same name was carried out with other parameters, or the volume is published in another way.',
    ends: 'Nothing. Delete the other volume, or delete the claim and create it again.',
    hints: [['hawser driver rpc {socket} Controller/ListVolumes', 'list the volumes of the driver']],
  },
  driverForbids: {
    title: 'The driver has no permission',
    sentence: 'driver {driver} lacks permission or credentials (PERMISSION_DENIED or UNAUTHENTICATED)',
    meaning: 'The storage rejected the credentials of the driver, or those in the secret that the class names.',
    ends: 'The credentials are corrected.',
    hints: [
      ['hawser get storageclass {class} -o yaml', 'see which secrets it names'],
      ['hawser get secrets -A', 'see whether they exist'],
    ],
  },
  preconditionFailed: {
    title: 'The driver refuses in the current state of the volume',
    sentence: 'driver {driver} refuses because of the current state of the volume (FAILED_PRECONDITION)',
    meaning:
      'The volume is still published on another node, still in use, or has snapshots. The driver says what must change first.',
    ends: 'The state changes; the call is retried automatically.',
    hints: [['hawser get volumeattachment', 'see where it is attached']],
  },
  notSupported: {
    title: 'The driver does not support this',
    sentence: 'driver {driver} does not support this operation (UNIMPLEMENTED)',
    meaning: 'Raw block volumes, expansion, snapshots, cloning and more are optional for drivers.',
    ends: 'Nothing. Use another driver.',
    hints: [['hawser driver check {socket}', 'see its capabilities']],
  },
  driverError: {
    title: 'The driver reports an error',
    sentence: 'driver {driver} reports an internal error; its message is shown',
    meaning: 'INTERNAL, UNKNOWN or DATA_LOSS: something failed inside the driver or its storage.',
    ends: 'A retry succeeds.',
    hints: [['hawser events', 'all errors so far']],
  },
  answerInvalid: {
    title: 'The driver answers OK without saying what it made',
    sentence: 'driver {driver} answered[ {call}] with OK, but its answer breaks the CSI specification',
    meaning:
      'An id is missing or holds control characters, a size is negative or too small, a map is too large. This is a bug of the driver. The call is repeated; the driver may have made something that nobody knows of.',
    ends: 'The driver is repaired.',
    hints: [
      ['hawser driver check {socket}', 'check the driver against the specification'],
      ['hawser events --for pvc/{claim}', 'all errors so far'],
    ],
  },
  callWithoutEffect: {
    title: 'The driver answers OK, but nothing happened on the node',
    sentence: 'driver {driver} answered OK to[ {call}], but the node sees no effect of it',
    meaning:
      "After each call the node looks at its own mount table, and after an expansion at the size of the filesystem. A volume that is not mounted would send the pod's data to the node's own disk, so the pod is not started; one that is still mounted must not count as removed. Often the driver runs in a container whose mounts do not reach the node (mount propagation must be Bidirectional). The call is repeated. A driver that publishes plain directories without a mount can say so: annotate its CSIDriver with hawser.dev/publishes-directories=true.",
    ends: 'The driver, or the mount propagation of its container, is repaired.',
    hints: [
      ['hawser driver check {socket}', 'check the driver against the specification'],
      ['hawser get csidriver {driver} -o yaml', 'see how the driver is declared'],
    ],
  },
  answerRefused: {
    title: 'The volume that the driver created does not match the claim',
    sentence: 'driver {driver} created a volume that does not match the claim or cannot be used; it is not used',
    meaning:
      'The volume was too small, not accessible from the chosen node, did not have the requested content, has an id or context that no object can hold, or has the handle of another volume. It was deleted again, unless it is the volume of another claim.',
    ends: 'A later volume matches.',
    hints: [['hawser events --for pvc/{claim}', 'see what did not match']],
  },
  sourceNotReady: {
    title: 'The source of the new volume is not ready',
    sentence: 'claim {claim} is to be created from a snapshot or another claim that is not ready',
    meaning: 'The snapshot is not ready, the source claim is not bound, or the source is being deleted.',
    ends: 'The source becomes ready.',
    hints: [
      ['hawser get volumesnapshots', 'see READYTOUSE'],
      ['hawser get pvc', 'see whether the source claim is bound'],
    ],
  },
  sourceMissing: {
    title: 'The source of the new volume does not exist',
    sentence: 'claim {claim} is to be created from {detail}, which does not exist; nothing was tried',
    meaning:
      'dataSource of the claim names a snapshot or a claim of the same namespace. The name has a typo, or the source was deleted.',
    ends: 'The source is created; or the claim is deleted and created with another source.',
    hints: [
      ['hawser get volumesnapshots,pvc', 'list the snapshots and claims'],
      ['hawser delete pvc {claim}', 'then create it again with another source'],
    ],
  },
  sourceTooLarge: {
    title: 'The new volume would be smaller than its source',
    sentence: 'claim {claim} requests {detail}: a volume must not be smaller than what it is created from',
    meaning: 'A clone or a restored snapshot needs at least the size of its source.',
    ends: 'Nothing. Delete the claim and create it again with the size of the source or more.',
    hints: [
      ['hawser describe pvc/{claim}', 'see the requested size and dataSource'],
      ['hawser delete pvc {claim}', 'then create it again with more'],
    ],
  },
  sourceUnusable: {
    title: 'The source of the new volume cannot be used',
    sentence: 'claim {claim} cannot be created from its source: it has another driver, class, volume mode or namespace',
    meaning: 'A snapshot or clone must have the driver and the volume mode of its source.',
    ends: 'Nothing. The claim must name another source.',
    hints: [['hawser describe pvc/{claim}', 'see dataSource']],
  },
  selectorUnsupported: {
    title: 'A claim with a selector cannot be provisioned',
    sentence: 'claim {claim} has a selector; drivers cannot provision volumes for it',
    meaning: 'A selector chooses among existing volumes by label.',
    ends: 'A volume with those labels is created.',
    hints: [['hawser get pv -o yaml', 'see the labels of the volumes']],
  },
  topologyMissing: {
    title: 'No node satisfies the topology',
    sentence: 'driver {driver} runs on no node that satisfies the topology of class {class}',
    meaning:
      'allowedTopologies of the class and the topology that the driver reported for its nodes have nothing in common.',
    ends: 'The driver registers on a node that fits, or the class is changed.',
    hints: [
      ['hawser get csinode -o yaml', 'see topologyKeys per driver'],
      ['hawser get storageclass {class} -o yaml', 'see allowedTopologies'],
    ],
  },
} as const satisfies CauseTable
