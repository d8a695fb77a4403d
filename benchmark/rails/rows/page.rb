# frozen_string_literal: true

module Bench
  module RailsPage
    module Rows
      # As many pages as the server makes for so many clients.
      class Page < HTTP::Rows::Load
        def details = [:per_core, :p50_ms, *super]

        def shown = %i[per_core p50_ms p99_ms pss_mb]

        def measure(server, size)
          super.then { |sample| sample.merge(per_core: sample[:cpu_us] && (1e6 / sample[:cpu_us])) }
        end
      end
    end
  end
end
