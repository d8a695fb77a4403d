# frozen_string_literal: true

module Heddle
  class Server
    # Computes how many connections this process accepts if `max_connections` is 0. Until its request runs, a connection
    # uses a bounded amount of memory. So the limit is the number of connections that fit into the process's share of
    # the memory, or into its limit of file descriptors, if these are fewer. Some descriptors are kept for the
    # application and for bodies in files.
    module ConnectionLimit
      # Bytes that a connection uses at most, without a body in memory (`body_buffer`): 64 KiB of unread input, and 48
      # KiB of a head and its fields.
      BYTES = 114_688
      # Number of descriptors that are kept for the application.
      RESERVE = 64
      # The limit is never lower than this, however few descriptors there are.
      LEAST = 16
      # The ratio of all descriptors to those for connections: a quarter of all is kept for bodies in files.
      BODIES = 4 / 3r
      private_constant :BYTES, :RESERVE, :LEAST, :BODIES

      class << self
        # @param configuration [Configuration]
        # @param descriptors [Integer] how many descriptors this process may have
        # @param memory [Integer, nil] bytes that all workers may use together; nil: not known
        # @return [Integer] the maximum number of connections
        def of(configuration, descriptors: Process.getrlimit(Process::RLIMIT_NOFILE).first,
               memory: configuration.memory_budget)
          return configuration.max_connections if configuration.max_connections > 0

          by_descriptors = descriptors - RESERVE - HTTP::Engine.body_files(descriptors)
          [[by_descriptors, by_memory(configuration, memory)].compact.min, LEAST].max
        end

        # @param configuration [Configuration]
        # @param memory [Integer, nil] see {.of}
        # @return [Integer, nil] how many descriptors the connections, their bodies in files and the application need;
        #   nil: not known
        def descriptors(configuration, memory: configuration.memory_budget)
          most = configuration.max_connections
          most = by_memory(configuration, memory) if most == 0
          most && (([most, LEAST].max + RESERVE) * BODIES).ceil
        end

        private

        # Returns the memory that all HTTP/2 connections share. In addition, each one uses as much as an HTTP/1.1
        # connection.
        def http2_memory(configuration)
          configuration.http2 == :off ? 0 : configuration.http.http2_memory
        end

        def by_memory(configuration, memory)
          workers = configuration.worker_processes? ? configuration.worker_count : 1
          memory && ((memory / workers) - http2_memory(configuration)) / (BYTES + configuration.http.body_buffer)
        end
      end
    end
  end
end
