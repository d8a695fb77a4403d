# frozen_string_literal: true

module Heddle
  class Server
    class Metrics
      # Heddle's own metrics. The table groups the metrics by the record that they are read from: the status of a
      # worker ({WorkerStatus#to_h}), one of its pools or HTTP clients, the master's status, or the whole report. Each
      # entry has a name (without the prefix `heddle_`), a help text, and the source of its values. The source is a key,
      # a path of keys, a Hash of keys and labels, or a Proc. A Proc returns a value or `[[value, labels, suffix], …]`.
      # A sample whose value is nil is left out. The type follows from the name (see {Metrics#type}).
      module Families
        # The engine measures in nanoseconds, and has four buckets for each power of two. The metrics contain only every
        # fourth bucket, from 66 µs to 69 s.
        BUCKETS = (0...(HTTP::Engine::LATENCY_BOUNDS.size - 1)).select do |bucket|
          bucket % 4 == 0 && HTTP::Engine::LATENCY_BOUNDS[bucket].between?(6e-5, 70)
        end.freeze
        CLASSES = %w[other 1xx 2xx 3xx 4xx 5xx].freeze
        # The states of a worker in which `worker_up` is 1.
        UP = %w[running reserve].freeze
        # For each status of a request that was rejected before it reached the application, the reason that the metrics
        # show.
        REJECTIONS = { 400 => "malformed", 408 => "slow", 413 => "body_limit", 414 => "target_limit",
                       417 => "expectation", 431 => "header_limit", 501 => "not_implemented", 502 => "malformed",
                       503 => "unavailable", 505 => "version" }.freeze
        # The groups of metrics that describe the items of a list in a worker's status. For each group: the list's key
        # in the status, and the labels of an item. The groups named_pool and server are in {SemanticConventions}.
        PARTS = {
          pool: [:pools, ->(pool) { pool.slice(:pool, :library) }],
          named_pool: [:pools, ->(pool) { { library: pool[:library], db_client_connection_pool_name: pool[:pool] } }],
          client: [:http_clients, ->(client) { client.slice(:origin) }],
          server: [:http_clients, ->(_client) { {} }]
        }.freeze
        private_constant :BUCKETS, :CLASSES, :UP, :REJECTIONS

        class << self
          # @param counts [Array<Integer>] the count of each bucket; the last bucket has no upper bound
          # @return [Array] the samples of a histogram, each `[value, labels, suffix]`
          def histogram(counts, bounds, sum, labels = {}, buckets: bounds.each_index)
            sums = counts.each_with_object([]) { |count, list| list << (count + (list.last || 0)) }
            [*buckets.map { |i| [sums[i], { **labels, le: bounds[i] }, "_bucket"] },
             [sums.last, { **labels, le: "+Inf" }, "_bucket"], [sum, labels, "_sum"], [sums.last, labels, "_count"]]
          end

          private

          def by(label, counts, key = nil)
            counts.to_h.map { |name, count| [key ? count[key] : count, { label => name }] }
          end

          # Uses only every second bucket, because there is a histogram for each part.
          def request_parts(one)
            buckets = BUCKETS.each_slice(2).map(&:first)
            one[:spent].to_h.flat_map do |part, (counts, sum)|
              histogram(counts, HTTP::Engine::LATENCY_BOUNDS, sum, { part: }, buckets:)
            end
          end

          def endpoint_parts(one)
            one[:endpoints].to_h.flat_map do |endpoint, parts|
              parts.map { |part, seconds| [seconds, { endpoint:, part: }] }
            end
          end

          # The classes 2xx to 5xx have a series from the beginning, even before their first response. The others get
          # one with their first response.
          def answers(one)
            one[:answers]&.zip(CLASSES)&.select { |count, status| status.match?(/[2-5]/) || count > 0 }
                         &.map { |count, status| [count, { status: }] }
          end

          # The engine counts a rejection by the queue as 503, too. So rejections by the queue are subtracted from
          # "unavailable".
          def rejections(one)
            counts = one[:rejections] or return
            reasons = REJECTIONS.values.to_h { |reason| [reason, 0] }
            reasons.merge!("queue_full" => one[:rejected_full].to_i, "queue_timeout" => one[:rejected_late].to_i)
            counts.each do |status, count|
              reason = REJECTIONS.fetch(status.to_s.to_i, "other")
              reasons[reason] = reasons.fetch(reason, 0) + count
            end
            reasons["unavailable"] -= reasons["queue_full"] + reasons["queue_timeout"]
            reasons.map { |reason, count| [[count, 0].max, { reason: }] }
          end

          def native_calls(one)
            one.dig(:offload, :libraries).to_a.flat_map do |calls|
              labels = { library: calls[:library], class: calls[:trust] }
              [[calls[:offloaded], { **labels, ran: "offloaded" }],
               [calls[:calls] - calls[:offloaded], { **labels, ran: "in_place" }]]
            end
          end

          # A close code gets a series only when it occurs for the first time.
          def socket_closes(one)
            one[:websockets].to_h.filter_map do |key, count|
              code = key[/\Aclosed_(\d+)\z/, 1] and [count, { code: }]
            end
          end

          def build_info(report)
            first = report[:workers].first || {}
            [[1, { version: VERSION, ruby: RUBY_VERSION, jit: first[:jit] || "none", selector: first[:selector].to_s }]]
          end

          def events(report)
            [*report[:workers], { index: "master", **report[:master].to_h }].flat_map do |one|
              one[:events].to_h.map { |event, count| [count, { worker: one[:index], event: }] }
            end
          end

          # The master publishes for processes that are not workers: they send their messages over the control socket.
          def published(report)
            of_master = { index: "master", **report[:master].to_h }
            [*report[:workers], of_master].map { |one| [one[:pubsub_published], { worker: one[:index] }] }
          end
        end

        TABLE = {
          report: [
            ["build_info", "Versions of Heddle and Ruby, JIT compiler and selector; always 1.",
             ->(report) { build_info(report) }],
            ["events_total", "Warnings and errors, by the event's name.", ->(report) { events(report) }],
            ["pubsub_published_total", "Messages published.", ->(report) { published(report) }],
            ["tls_certificate_expiry_timestamp_seconds", "When the certificate expires, in seconds since 1970.",
             ->(report) { report[:certificates].map { |one| [one[:expires], { file: one[:file] }] } }]
          ],
          master: [
            ["worker_restarts_total", "Workers that ended unexpectedly and were replaced.",
             ->(one) { one[:restarts].to_i }],
            ["workers_wanted", "Number of workers that the master keeps running.", ->(one) { one[:wanted].to_i }],
            ["server_memory_bytes", "Memory of all processes of the server (PSS).", :memory],
            ["server_memory_limit_bytes", "Memory that all processes of the server may use (PSS).", :memory_limit],
            ["protection_tripped", "1: new workers have no protections, because workers have crashed.",
             ->(one) { one.dig(:protection, :tripped) ? 1 : 0 }]
          ],
          worker: [
            ["worker_up", "1: the worker responds to the master; 0: it is stuck, starting or ending.",
             ->(one) { UP.include?(one[:state]) ? 1 : 0 }],
            # Requests and connections.
            ["requests_total", "Complete responses of the application, by class of status.", ->(one) { answers(one) }],
            ["rejected_total", "Requests rejected before they reached the application, by the reason.",
             ->(one) { rejections(one) }],
            ["bodies_in_files_total", "Request bodies that did not fit into memory.", :spooled],
            ["body_disk_bytes", "Bytes of request bodies in files.", :body_disk_used],
            ["request_duration_seconds", "Time from the head of a request to the end of its response.", lambda { |one|
              bounds = HTTP::Engine::LATENCY_BOUNDS
              one[:latencies] && histogram(one[:latencies], bounds, one[:latency_sum], buckets: BUCKETS)
            }],
            ["request_part_duration_seconds", "How requests have spent their time, by part.",
             ->(one) { request_parts(one) }],
            ["endpoint_part_seconds_total",
             "How requests that took 1 ms or more outside of the queue have spent their time, by endpoint.",
             ->(one) { endpoint_parts(one) }],
            ["requests_started_total", "Requests whose head was complete.", :started_requests],
            ["clients_gone_total", "Clients that left before their response was complete.", :clients_gone],
            ["connections_accepted_total", "Connections accepted.", :accepted],
            ["connections_refused_total", "Connections refused because their address was at its limit.", :refused],
            ["connections_handed_off_total",
             "Connections handed off to another worker, because the loop was blocked or overloaded.", :handed_off],
            ["handoffs_received_total", "Connections received from another worker.", :handoffs_received],
            ["tls_handshakes_total", "TLS handshakes.",
             { handshakes: { result: "ok" }, failed_handshakes: { result: "failed" } }],
            ["queue_rejected_total", "Requests answered with 503: the queue was full, or they waited for too long.",
             { rejected_full: { reason: "full" }, rejected_late: { reason: "late" } }],
            # Load.
            ["requests_in_flight", "Requests that run now.", :running],
            ["requests_waiting", "Requests that wait for their turn.", :waiting],
            ["requests_limit", "Maximum number of requests that run at once; absent without a limit.", :limit],
            ["connections", "Open connections.", %i[idle transit running].to_h { |state| [state, { state: }] }],
            ["accepting", "1: the worker accepts connections; 0: it does not.",
             ->(one) { { true => 1, false => 0 }[one[:accepting]] }],
            ["oldest_request_seconds", "Age of the oldest running request.",
             ->(one) { one[:requests] && (one.dig(:requests, 0, :age) || 0) }],
            ["reserve_serving", "1: the reserve worker serves; 0: it waits, because the other workers run.",
             ->(one) { one[:reserve] && (one[:reserve].to_s == "serving" ? 1 : 0) }],
            ["reserve_activations_total", "How often the reserve worker has begun to serve.",
             ->(one) { one[:reserve] && one[:reserve_activations] }],
            ["reserve_deferred_requests", "Requests that a reserve does not start: their endpoint blocks a worker.",
             ->(one) { one[:reserve] && one[:reserve_deferred] }],
            ["loop_lag_seconds", "Recent delay of the loop.", :lag],
            ["loop_heartbeat_age_seconds",
             "Time since the loop's last heartbeat; if it is well above 1 s, the loop is blocked.", :heartbeat_age],
            ["preemptions_total", "How often a computing fiber was preempted.", :preemptions],
            ["loop_ticks_total", "Ticks of the loop; an idle loop hardly ticks.", :ticks],
            ["fibers", "Fibers of the loop.", :fibers],
            ["pool_waiting", "Tasks that wait for a resource of a pool.", :pool_waiting],
            # Native calls and stalls. The number of labels is bounded: there are few libraries and causes, and
            # Heddle::Stalls limits the endpoints.
            ["offload_calls_total", "Native calls that were offloaded.", %i[offload calls]],
            ["offload_calls", "Offloaded native calls that run, and that wait for a thread.",
             %i[running queued].to_h { |state| [[:offload, state], { state: }] }],
            ["offload_threads", "Offload threads.", %i[offload threads]],
            ["offload_functions_missing", "Functions of Ruby that offload should intercept, but can't.",
             ->(one) { one[:offload] && one[:offload][:missing].to_a.size }],
            ["offload_return_seconds_total", "How long completed native calls waited for their loops.",
             %i[offload return_wait]],
            ["native_calls_total", "Native calls of fibers, by library, its class, and where they ran.",
             ->(one) { native_calls(one) }],
            ["callback_waits_total", "Waits in callbacks of native libraries, by library.",
             ->(one) { by(:library, one[:callbacks]) }],
            ["stalls_total", "How often the loop was blocked, by cause.",
             ->(one) { by(:cause, one.dig(:stalls, :by_cause), :count) }],
            ["stall_seconds_total", "How long the loop was blocked, by cause.",
             ->(one) { by(:cause, one.dig(:stalls, :by_cause), :seconds) }],
            ["endpoint_stalls_total", "How often the loop was blocked, by endpoint.",
             ->(one) { by(:endpoint, one.dig(:stalls, :by_endpoint), :count) }],
            ["endpoint_stall_seconds_total", "How long the loop was blocked, by endpoint.",
             ->(one) { by(:endpoint, one.dig(:stalls, :by_endpoint), :seconds) }],
            # For joins with other series of a worker: `… * on (worker) group_left (protection) …`.
            ["worker_protection_info", "Protections that are on in the worker, or none; always 1.", lambda { |one|
              on = one[:protection] and [[1, { protection: on.empty? ? "none" : on.sort.join(",") }]]
            }],
            # The process.
            ["memory_bytes", "Memory of the worker: rss, and pss, which counts only its share of shared pages.",
             { memory: { kind: "rss" }, pss: { kind: "pss" } }],
            ["gc_runs_total", "Runs of the garbage collector.",
             %i[minor major].to_h { |kind| [[:gc, kind], { kind: }] }],
            ["gc_seconds_total", "Time in the garbage collector.", %i[gc time]],
            ["objects_allocated_total", "Ruby objects allocated.", %i[gc allocated]],
            ["cpu_seconds_total", "CPU time of the worker, in user and kernel mode.", :cpu],
            ["threads", "Ruby threads.", :threads],
            ["worker_start_time_seconds", "When the worker was started, in seconds since 1970.", :started],
            # WebSockets and topics.
            ["websockets", "Open WebSockets.", %i[websockets open]],
            ["websockets_opened_total", "WebSockets opened.", %i[websockets opened]],
            ["websocket_messages_total", "Messages of WebSockets.",
             %i[received sent].to_h { |direction| [[:websockets, direction], { direction: }] }],
            ["websocket_bytes_total", "Bytes of the messages of WebSockets.",
             %i[received sent].to_h { |direction| [[:websockets, :"#{direction}_bytes"], { direction: }] }],
            ["websocket_failures_total", "WebSockets that the server ended, by the reason.",
             { failures: "protocol", too_slow: "slow", vanished: "timeout" }
               .to_h { |key, reason| [[:websockets, key], { reason: }] }],
            ["websocket_closes_total", "WebSockets that have ended, by their close code.",
             ->(one) { socket_closes(one) }],
            ["pubsub_subscribers", "Subscribers of topics.", :pubsub_subscribers],
            ["pubsub_topics", "Topics that have subscribers.", :pubsub_topics],
            ["pubsub_delivered_total", "Messages delivered, counted once for each subscriber.", :pubsub_delivered],
            ["pubsub_dropped_total", "Messages dropped because a subscriber was too slow.", :pubsub_dropped],
            ["pubsub_resets_total", "Resets of subscribers that have missed messages.", :pubsub_resets],
            ["pubsub_closed_total", "Subscribers closed because they were too slow.", :pubsub_closed]
          ],
          # A value is absent if the pool's library does not count it.
          pool: [
            ["pool_resources", "Resources of a pool.", %i[busy idle].to_h { |state| [state, { state: }] }],
            ["pool_limit", "Maximum number of resources of a pool.", :limit],
            ["pool_shared_limit", "Maximum number of resources of a pool in all workers.", :max_total],
            ["pool_shared_resources", "Resources of a pool in all workers.", :size_total],
            ["pool_tasks_waiting", "Tasks that wait for a resource of a pool.", :waiting],
            ["pool_waits_total", "How often tasks waited for a resource of a pool.", :waits],
            ["pool_wait_seconds_total", "How long tasks waited for a resource of a pool.", :wait_seconds],
            ["pool_held_seconds_total", "How long resources were in use.", :held_seconds],
            ["pool_timeouts_total", "How often a task got no resource of a pool in time.", :timeouts],
            ["pool_created_total", "Resources that a pool has created.", :created],
            ["pool_closed_total", "Resources that a pool has closed, by reason.",
             ->(pool) { by(:reason, pool[:closed]) }],
            ["pool_nested_total", "Check-outs that could never succeed.", :nested],
            ["pool_held_while_waiting_total", "How often a fiber kept a connection while it waited for something else.",
             :held_while_waiting]
          ],
          # The number of origins, and so of labels, is bounded: see WorkerStatus.
          client: [
            ["http_client_connections", "Connections of Heddle::HTTP::Client.",
             ->(one) { [[one[:open] - one[:idle], { state: "busy" }], [one[:idle], { state: "idle" }]] }],
            ["http_client_requests_waiting", "Requests that wait for a connection.", :waiting],
            ["http_client_requests_total", "Requests sent.", :requests],
            ["http_client_connections_opened_total", "Connections opened.", :opened],
            ["http_client_waits_total", "How often requests waited for a connection.", :waits],
            ["http_client_stale_connections_total", "Connections that a request could not reuse.",
             :stale],
            ["http_client_wait_seconds_total", "Seconds that requests have waited for a connection.", :wait_seconds],
            ["http_client_connect_seconds_total", "Seconds that opening connections has taken.", :connect_seconds],
            ["http_client_answer_seconds_total", "Seconds from requests to the heads of their responses.",
             :answer_seconds]
          ]
        }.freeze
      end
    end
  end
end
