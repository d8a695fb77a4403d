# frozen_string_literal: true

module Heddle
  module Adaptations
    # Gives each request its own copy of chosen thread variables. Gems that keep a request's state by
    # `Thread#thread_variable_set` rely on one request for each thread; here many requests run in fibers of one thread.
    # A request's values are kept in the storage of its fiber. The fibers that it starts see the values, other threads
    # don't, and the values end with the request.
    #
    # Other variables, variables of other threads, and all variables outside of a loop stay as they are.
    module Isolation
      # Where a request's copies are kept, in the storage of its fiber.
      STORE = :heddle_thread_variables
      private_constant :STORE

      # The copies of one request, and the thread that they belong to, because threads inherit storage, too.
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
          @names = Ractor.make_shareable(@names.merge(added)) # Ractors read it too
          Thread.prepend(Variables) unless @names.empty?
        end

        # @param thread [Thread]
        # @return [Hash{Symbol => Object}, nil] the variables that the current request has set; nil where the thread's
        #   own variables apply
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
