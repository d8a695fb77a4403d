# frozen_string_literal: true

require "json"

module Heddle
  class Server
    module Cluster
      # A new master on the way: a process of its own, started with the command line of this one, that inherits the
      # sockets.
      class Upgrade
        # @return [Integer, nil] nil once it has ended
        attr_reader :pid
        # @return [IO] readable when it has something to say
        attr_reader :io

        # @param commons [Commons]
        # @param command [Array<String>]
        # @param folder [WorkingFolder] where it is started
        # @raise [SystemCallError]
        def initialize(commons, command, folder)
          @io, writer = IO.pipe
          sockets = commons.by_key.transform_values { |all| all.map { |one| one.io.fileno } }
          values = { listeners: sockets, pair: [commons.giving.fileno, commons.taking.fileno], ready: writer.fileno,
                     scoreboard: commons.scoreboard.descriptors, ticket_keys: commons.ticket_keys,
                     pubsub: commons.pubsub }
          handed = [sockets.values, values.except(:listeners).values].flatten.compact
          # systemd's WATCHDOG_PID names this master, and would keep the new one from notifying systemd.
          environment = { Inheritance::VARIABLE => JSON.generate(values), "WATCHDOG_PID" => nil, **folder.variables }
          @pid = spawn(environment, *command, **handed.to_h { |fd| [fd, fd] }, chdir: folder.path)
        ensure
          writer&.close
        end

        # @return [Symbol] :ready, :failed or :wait
        def hear
          text = @io.read_nonblock(100, exception: false)
          case text
          when String then :ready
          when nil then :failed
          else :wait
          end
        end

        # It is no child any more.
        # @return [void]
        def ended = @pid = nil

        # @return [void]
        def close
          @io.close unless @io.closed?
        end

        # In a child process.
        alias forget close
      end
    end
  end
end
