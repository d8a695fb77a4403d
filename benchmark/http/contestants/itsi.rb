# frozen_string_literal: true

module Bench
  module HTTP
    module Contestants
      # Itsi twice: once with threads that call the application, once with its Fiber scheduler.
      class Itsi < Contestant
        THREADS = 5
        # With more requests than this waiting it answers 503; it would be 30 a thread, fewer than there are
        # connections here.
        BACKLOG = 20_000
        # It ends a connection that has asked nothing for this long, 2 s by itself: too few for the row of idle ones.
        IDLE_LIMIT = 120.0 # seconds
        COMMON = <<~RUBY.freeze
          header_read_timeout #{IDLE_LIMIT}
          ruby_thread_request_backlog_size #{BACKLOG}
          preload true
          log_level :error
          log_format :plain
        RUBY
        # It looks for its scheduler where Bundler would have put it on the load path, and nowhere else.
        FIBERS = "require \"itsi/scheduler\"\nthreads 1\nfiber_scheduler true\n"
        private_constant :COMMON, :FIBERS

        def self.variants(**settings) = %i[threads fibers].map { |mode| new(mode, **settings) }

        def initialize(mode, **)
          super(**)
          @mode = mode
        end

        def key = "itsi-#{@mode}"

        def label = "Itsi #{@mode}"

        def settings
          "#{@mode == :fibers ? "its Fiber scheduler on one thread" : "#{THREADS} threads"}, " \
            "ruby_thread_request_backlog_size #{BACKLOG}, header_read_timeout #{IDLE_LIMIT.round}"
        end

        def command(port, folder, ruby_flags)
          File.write(File.join(folder, "Itsi.rb"), configuration(port))
          [*executable("itsi", ruby_flags), "-C", File.join(folder, "Itsi.rb"), "serve"]
        end

        private

        def gem_name = "itsi-server"

        def configuration(port)
          mode = @mode == :fibers ? FIBERS : "threads #{THREADS}\nfiber_scheduler nil\n"
          "#{COMMON}workers #{@processes}\nbind \"http://127.0.0.1:#{port}\"\n#{mode}rackup_file #{@config.inspect}\n"
        end
      end
    end
  end
end
