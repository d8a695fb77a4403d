# frozen_string_literal: true

module Heddle
  module Adaptations
    # Gives each request its own values of chosen thread variables, which are nil at first. Gems that keep a request's
    # state with `Thread#thread_variable_set` rely on one request per thread, but here many requests run in fibers of
    # one thread. The values are in the storage of the request's fiber, from the first access to one of them until the
    # end of the request. Fibers that the request starts after that access share them. Fibers that it has started
    # earlier, and other threads, don't.
    #
    # Nothing changes for other variables, for variables of other threads, and outside of a loop.
    module Isolation
      # The key of a request's values in the storage of its fiber.
      STORE = :heddle_thread_variables
      private_constant :STORE

      # The values of one request, and the thread that serves it. A thread that the request starts inherits the storage,
      # but does not use the values.
      Copies = Struct.new(:thread, :values)
      private_constant :Copies

      @names = {}.freeze

      class << self
        # @return [Hash{Symbol, String => Symbol}] the chosen variables
        attr_reader :names

        # Isolates the variables from now on, in the whole process.
        #
        # @param names [Array<String, Symbol>] the chosen variables
        # @return [void]
        def start(names)
          added = names.map(&:to_sym).flat_map { |name| [[name, name], [name.name, name]] }.to_h
          @names = Ractor.make_shareable(@names.merge(added)) # because other Ractors read it
          Thread.prepend(Variables) unless @names.empty?
        end

        # @param thread [Thread]
        # @return [Hash{Symbol => Object}, nil] the variables that the current request has set; nil if the thread's own
        #   variables apply
        def values(thread)
          return unless thread.equal?(Thread.current)

          copies = Fiber[STORE]
          return copies.values if copies && copies.thread.equal?(thread)
          return unless Fiber.current_scheduler

          (Fiber[STORE] = Copies.new(thread, {})).values
        end
      end

      # The module prepended to Thread.
      module Variables
        # @see Thread#thread_variable_get
        def thread_variable_get(key)
          name = Isolation.names[key] or return super
          values = Isolation.values(self) or return super
          values[name]
        end

        # @see Thread#thread_variable_set
        def thread_variable_set(key, value)
          name = Isolation.names[key] or return super
          values = Isolation.values(self) or return super
          value.nil? ? values.delete(name) : values[name] = value
          value
        end

        # @see Thread#thread_variable?
        def thread_variable?(key)
          name = Isolation.names[key] or return super
          values = Isolation.values(self) or return super
          values.key?(name)
        end
      end
    end
  end
end
