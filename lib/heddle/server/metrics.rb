# frozen_string_literal: true

module Heddle
  class Server
    # The server's metrics in Prometheus' text format (exposition format, version 0.0.4). Every worker has its own
    # series, so that a worker that is replaced is a counter that begins again and no sum that falls.
    class Metrics
      autoload :Messaging, "heddle/server/metrics/messaging"
      autoload :NativeCalls, "heddle/server/metrics/native_calls"
      autoload :SemanticConventions, "heddle/server/metrics/semantic_conventions"
      include Messaging
      include NativeCalls
      include SemanticConventions

      TYPE = "text/plain; version=0.0.4; charset=utf-8"
      # Of the engine's buckets, four to a power of two, each power of two from 66 µs to 69 s. Their bounds are exact,
      # which is why they are no round numbers.
      BUCKETS = (0...(HTTP::Engine::LATENCY_BOUNDS.size - 1)).select do |bucket|
        bucket % 4 == 0 && HTTP::Engine::LATENCY_BOUNDS[bucket].between?(6e-5, 70)
      end.freeze
      CLASSES = %w[other 1xx 2xx 3xx 4xx 5xx].freeze
      # States of a worker that answers.
      UP = %w[running reserve].freeze
      # Why requests get a status before they reach the application.
      REJECTIONS = { 400 => "malformed", 408 => "slow", 413 => "body_limit", 414 => "target_limit",
                     417 => "expectation", 431 => "header_limit", 501 => "not_implemented", 502 => "malformed",
                     503 => "unavailable", 505 => "version" }.freeze
      private_constant :BUCKETS, :CLASSES, :UP, :REJECTIONS

      # @param report [Hash{Symbol => Object}] `workers`: of {WorkerStatus#to_h} each, with its `index`; `master`: the
      #   master's own, if there is one; `certificates`: of {Net::TLS::Certificates#expiries}
      def initialize(report)
        # While one replaces another both have the same number, and a series must be one of them.
        @workers = report[:workers].group_by { |one| one[:index] }.map do |_, all|
          all.min_by { |one| one[:uptime] || Float::INFINITY }
        end
        @master = report[:master]
        @certificates = report[:certificates].to_a
        @out = +""
        @prefix = "heddle_"
      end

      # @return [String]
      def to_s
        about
        traffic
        certificates
        load
        pools
        offload
        process
        stalls
        callbacks
        messaging
        protection
        events
        master if @master
        semantic_conventions
        @out
      end

      private

      def about
        first = @workers.first || {}
        family("build_info", "gauge", "Versions of Heddle and Ruby, JIT compiler and selector; always 1.")
        sample("build_info", 1, version: VERSION, ruby: RUBY_VERSION, jit: first[:jit] || "none",
                                selector: first[:selector] || "")
        family("worker_up", "gauge", "Does the worker answer? 0: it is stuck, or starting.")
        @workers.each { |one| sample("worker_up", UP.include?(one[:state]) ? 1 : 0, worker: one[:index]) }
      end

      def traffic
        status_counter("requests_total", "Complete responses of the application, by class of status.", :answers,
                       %w[2xx 3xx 4xx 5xx])
        rejections
        one("bodies_in_files_total", "counter", "Request bodies that did not fit into memory.", :spooled)
        one("body_disk_bytes", "gauge", "Bytes of request bodies in files.", :body_disk_used)
        histogram
        one("requests_started_total", "counter", "Requests whose head was complete.", :started_requests)
        one("clients_gone_total", "counter", "Clients that left before they had their answer.", :clients_gone)
        one("connections_accepted_total", "counter", "Connections accepted.", :accepted)
        one("connections_refused_total", "counter", "Connections refused: their address had its share already.",
            :refused)
        one("connections_handed_off_total", "counter",
            "Connections handed off to another worker: the loop was held up, or had too much to do.",
            :handed_off)
        one("handoffs_received_total", "counter", "Connections received from another worker.", :handoffs_received)
        family("tls_handshakes_total", "counter", "TLS handshakes.")
        each_with(:handshakes) { |one, value| sample("tls_handshakes_total", value, worker: one[:index], result: "ok") }
        each_with(:failed_handshakes) do |one, value|
          sample("tls_handshakes_total", value, worker: one[:index], result: "failed")
        end
        family("queue_rejected_total", "counter", "Requests answered with 503: too many waited, or for too long.")
        each_with(:rejected_full) do |one, value|
          sample("queue_rejected_total", value, worker: one[:index], reason: "full")
        end
        each_with(:rejected_late) do |one, value|
          sample("queue_rejected_total", value, worker: one[:index], reason: "late")
        end
      end

      # The queue's are among those of the status 503.
      def rejections
        family("rejected_total", "counter", "Requests rejected before they reached the application, by the reason.")
        each_with(:rejections) do |one, counts|
          queue = { "queue_full" => one[:rejected_full].to_i, "queue_timeout" => one[:rejected_late].to_i }
          reasons = Hash.new(0).update(queue)
          counts.each { |status, count| reasons[REJECTIONS.fetch(status.to_s.to_i, "other")] += count }
          reasons["unavailable"] = [reasons["unavailable"] - queue.values.sum, 0].max
          REJECTIONS.each_value { |reason| reasons[reason] += 0 }
          reasons.each { |reason, count| sample("rejected_total", count, worker: one[:index], reason:) }
        end
      end

      # Absent without TLS.
      def certificates
        family("tls_certificate_expiry_timestamp_seconds", "gauge", "When the certificate expires, since 1970.")
        @certificates.each { |one| sample("tls_certificate_expiry_timestamp_seconds", one[:expires], file: one[:file]) }
      end

      def load
        one("requests_in_flight", "gauge", "Requests that run now.", :running)
        one("requests_waiting", "gauge", "Requests that wait for their turn.", :waiting)
        one("requests_limit", "gauge", "How many requests may run at once; absent: any number.", :limit)
        family("connections", "gauge", "Open connections.")
        %i[idle transit].each do |key|
          each_with(key) { |one, value| sample("connections", value, worker: one[:index], state: key) }
        end
        each_with(:running) { |one, value| sample("connections", value, worker: one[:index], state: "running") }
        family("accepting", "gauge", "Are connections accepted?")
        each_with(:accepting) { |one, value| sample("accepting", value ? 1 : 0, worker: one[:index]) }
        family("oldest_request_seconds", "gauge", "Age of the request that has run for longest.")
        each_with(:requests) do |one, value|
          sample("oldest_request_seconds", value.first ? value.first[:age] : 0, worker: one[:index])
        end
        reserves
        one("loop_lag_seconds", "gauge", "How late the loop was lately.", :lag)
        one("loop_heartbeat_age_seconds", "gauge",
            "Time since the loop's last heartbeat; above 1 s the loop is held up.", :heartbeat_age)
        one("preemptions_total", "counter", "How often a fiber that computed had to let others run.", :preemptions)
        one("loop_ticks_total", "counter", "Ticks of the loop; without requests there are hardly any.", :ticks)
        one("fibers", "gauge", "Fibers of the loop.", :fibers)
        one("pool_waiting", "gauge", "Tasks that wait for something from a pool.", :pool_waiting)
      end

      # Absent where a library doesn't count it.
      def pools
        pool_series("pool_resources", "gauge", "Resources of a pool.", %i[busy idle]) { |key| { state: key } }
        pool_series("pool_limit", "gauge", "How many a pool makes at most.", %i[limit])
        pool_series("pool_shared_limit", "gauge", "How many all workers make at most.", %i[max_total])
        pool_series("pool_shared_resources", "gauge", "Resources of a pool in all workers.", %i[size_total])
        pool_series("pool_tasks_waiting", "gauge", "Tasks that wait for something from a pool.", %i[waiting])
        pool_series("pool_waits_total", "counter", "How often tasks waited for something from a pool.", %i[waits])
        pool_series("pool_wait_seconds_total", "counter", "For how long together.", %i[wait_seconds])
        pool_series("pool_held_seconds_total", "counter", "For how long resources were in use.", %i[held_seconds])
        pool_series("pool_timeouts_total", "counter", "How often a task waited in vain.", %i[timeouts])
        pool_series("pool_created_total", "counter", "How many a pool has made.", %i[created])
        family("pool_closed_total", "counter", "How many a pool has closed, by the reason.")
        each_pool do |labels, pool|
          pool[:closed]&.each { |reason, count| sample("pool_closed_total", count, **labels, reason:) }
        end
        pool_series("pool_nested_total", "counter", "Check-outs that could never be served.", %i[nested])
        pool_series("pool_held_while_waiting_total", "counter", "Connections held while their fibers waited elsewhere.",
                    %i[held_while_waiting])
      end

      def pool_series(name, type, help, keys)
        family(name, type, help)
        each_pool do |labels, pool|
          keys.each { |key| sample(name, pool[key], **labels, **(block_given? ? yield(key) : {})) if pool[key] }
        end
      end

      def each_pool
        each_with(:pools) do |one, pools|
          pools.each { |pool| yield({ worker: one[:index], pool: pool[:pool], library: pool[:library] }, pool) }
        end
      end

      # Absent where there is none.
      def reserves
        family("reserve_serving", "gauge", "Does the reserve worker serve? 0: the others run.")
        each_with(:reserve) do |one, state|
          sample("reserve_serving", state.to_s == "serving" ? 1 : 0, worker: one[:index])
        end
        family("reserve_activations_total", "counter", "How often the reserve worker has begun to serve.")
        each_with(:reserve) do |one, _|
          sample("reserve_activations_total", one[:reserve_activations], worker: one[:index])
        end
        family("reserve_deferred_requests", "gauge",
               "Requests that a reserve does not start: their kind blocks a worker.")
        each_with(:reserve) do |one, _|
          sample("reserve_deferred_requests", one[:reserve_deferred], worker: one[:index])
        end
      end

      def process
        family("memory_bytes", "gauge", "Memory of the worker: rss, and pss, in which shared pages count by share.")
        each_with(:memory) { |one, value| sample("memory_bytes", value, worker: one[:index], kind: "rss") }
        each_with(:pss) { |one, value| sample("memory_bytes", value, worker: one[:index], kind: "pss") }
        family("gc_runs_total", "counter", "Runs of the garbage collector.")
        each_with(:gc) do |one, gc|
          %i[minor major].each do |kind|
            sample("gc_runs_total", gc[kind], worker: one[:index], kind:)
          end
        end
        family("gc_seconds_total", "counter", "Time in the garbage collector.")
        each_with(:gc) { |one, gc| sample("gc_seconds_total", gc[:time], worker: one[:index]) }
        family("objects_allocated_total", "counter", "Ruby objects allocated.")
        each_with(:gc) { |one, gc| sample("objects_allocated_total", gc[:allocated], worker: one[:index]) }
        one("cpu_seconds_total", "counter", "Processor time of the worker, in the system's calls too.", :cpu)
        one("threads", "gauge", "Ruby threads.", :threads)
        one("worker_start_time_seconds", "gauge", "When the worker was started, since 1970.", :started)
      end

      # Labelled by what is bounded: causes, and endpoints as Heddle::Stalls counts them.
      def stalls
        stall_series("stalls_total", "How often the loop was held up.", :count)
        stall_series("stall_seconds_total", "For how long together.", :seconds)
        endpoint_series("endpoint_stalls_total", "The same by what was served: method and path.", :count)
        endpoint_series("endpoint_stall_seconds_total", "For how long together, by what was served.", :seconds)
      end

      def endpoint_series(name, help, key)
        family(name, "counter", help)
        each_with(:stalls) do |one, stalls|
          stalls[:by_endpoint].each { |endpoint, count| sample(name, count[key], worker: one[:index], endpoint:) }
        end
      end

      # To be joined to any other series by its worker: `… * on (worker) group_left (protection) …`.
      def protection
        family("worker_protection_info", "gauge", "Protections that the worker has on, or none; always 1.")
        each_with(:protection) do |one, on|
          sample("worker_protection_info", 1, worker: one[:index], protection: on.empty? ? "none" : on.sort.join(","))
        end
      end

      def stall_series(name, help, key)
        family(name, "counter", help)
        each_with(:stalls) do |one, stalls|
          stalls[:by_cause].each { |cause, count| sample(name, count[key], worker: one[:index], cause:) }
        end
      end

      def events
        family("events_total", "counter", "Warnings and errors, by the event's name.")
        [*@workers, { index: "master", **@master.to_h }].each do |one|
          one[:events]&.each { |event, count| sample("events_total", count, worker: one[:index], event:) }
        end
      end

      def master
        family("worker_restarts_total", "counter", "Workers that ended unexpectedly and were replaced.")
        sample("worker_restarts_total", @master[:restarts].to_i)
        family("workers_wanted", "gauge", "How many workers there should be.")
        sample("workers_wanted", @master[:wanted].to_i)
        server_memory
        family("protection_tripped", "gauge", "1: crashes of workers have switched protections off in new ones.")
        sample("protection_tripped", @master.dig(:protection, :tripped) ? 1 : 0)
      end

      def server_memory
        { memory: "Memory of all processes of the server (PSS).",
          memory_limit: "Memory that they may use together." }.each do |key, help|
          bytes = @master[key] or next
          family("server_#{key}_bytes", "gauge", help)
          sample("server_#{key}_bytes", bytes)
        end
      end

      # All series exist from the beginning, before their first event.
      def status_counter(name, help, key, classes)
        family(name, "counter", help)
        each_with(key) do |one, counts|
          CLASSES.each_with_index do |status, i|
            sample(name, counts[i], worker: one[:index], status:) if classes.include?(status) || counts[i] > 0
          end
        end
      end

      def histogram
        name = "request_duration_seconds"
        family(name, "histogram", "From the complete head of a request to its answer.")
        each_with(:latencies) do |one, counts|
          bounds = HTTP::Engine::LATENCY_BOUNDS
          histogram_samples(name, { worker: one[:index] }, counts, bounds, one[:latency_sum], buckets: BUCKETS)
        end
      end

      # @param counts [Array<Integer>] in each bucket; the last one has no bound
      def histogram_samples(name, labels, counts, bounds, sum, buckets: bounds.each_index)
        sums = counts.each_with_object([]) { |count, list| list << (count + (list.last || 0)) }
        buckets.each { |i| sample("#{name}_bucket", sums[i], **labels, le: bounds[i]) }
        sample("#{name}_bucket", sums.last, **labels, le: "+Inf")
        sample("#{name}_sum", sum, **labels)
        sample("#{name}_count", sums.last, **labels)
      end

      def one(name, type, help, key)
        family(name, type, help)
        each_with(key) { |one, value| sample(name, value, worker: one[:index]) }
      end

      # A worker that does not answer has said nothing.
      def each_with(key) = @workers.each { |one| yield one, one[key] unless one[key].nil? }

      def family(name, type, help)
        @out << "# HELP #{@prefix}#{name} #{help}\n# TYPE #{@prefix}#{name} #{type}\n"
      end

      def sample(name, value, **labels)
        pairs = labels.map do |label, text|
          "#{label}=\"#{text.to_s.gsub(/[\\"\n]/, "\\" => "\\\\", "\"" => "\\\"", "\n" => "\\n")}\""
        end
        @out << @prefix << name << (pairs.empty? ? "" : "{#{pairs.join(",")}}") << " " << value.to_s << "\n"
      end
    end
  end
end
