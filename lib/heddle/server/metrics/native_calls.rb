# frozen_string_literal: true

module Heddle
  class Server
    class Metrics
      # The series of native calls, and of waits in their callbacks.
      module NativeCalls
        private

        def offload
          family("offload_calls_total", "counter", "Native calls that ran beside the loop.")
          each_with(:offload) { |one, offload| sample("offload_calls_total", offload[:calls], worker: one[:index]) }
          family("offload_calls", "gauge", "Native calls beside the loop that run, and that wait for a thread.")
          each_with(:offload) do |one, offload|
            %i[running queued].each { |state| sample("offload_calls", offload[state], worker: one[:index], state:) }
          end
          family("offload_threads", "gauge", "Threads for native calls.")
          each_with(:offload) { |one, offload| sample("offload_threads", offload[:threads], worker: one[:index]) }
          family("offload_functions_missing", "gauge", "Functions of Ruby that offload should intercept, and can't.")
          each_with(:offload) do |one, offload|
            sample("offload_functions_missing", offload[:missing].to_a.size, worker: one[:index])
          end
          offload_libraries
        end

        # Labelled by what is bounded: the libraries that are loaded.
        def offload_libraries
          family("offload_return_seconds_total", "counter", "For how long ended native calls waited for their loops.")
          each_with(:offload) do |one, offload|
            sample("offload_return_seconds_total", offload[:return_wait], worker: one[:index])
          end
          family("native_calls_total", "counter", "Native calls of fibers, by library, its class, and where they ran.")
          each_with(:offload) do |one, offload|
            offload[:libraries].each do |calls|
              labels = { worker: one[:index], library: calls[:library], class: calls[:trust] }
              sample("native_calls_total", calls[:offloaded], **labels, ran: "offloaded")
              sample("native_calls_total", calls[:calls] - calls[:offloaded], **labels, ran: "in_place")
            end
          end
        end

        # Absent where they are not counted.
        def callbacks
          family("callback_waits_total", "counter", "Waits in callbacks of native libraries, by the library.")
          each_with(:callbacks) do |one, counts|
            counts.each { |library, count| sample("callback_waits_total", count, worker: one[:index], library:) }
          end
        end
      end
    end
  end
end
