# frozen_string_literal: true

require "socket"

module Heddle
  module CLI
    class CheckCommand
      # Looks whether addresses can be listened on, without doing so: on a machine that serves they are taken.
      module Binds
        # Bytes of a unix socket's path.
        LONGEST_PATH = 107

        class << self
          # @param configuration [Server::Configuration]
          # @return [Array<String>]
          def problems(configuration)
            configuration.binds.filter_map { |bind| problem(bind) }
          rescue Server::ConfigurationError, Server::BootError => e
            [e.message]
          end

          private

          def problem(bind)
            return bind.problem if bind.respond_to?(:problem)

            bind.respond_to?(:path) ? unix(bind.path) : tcp(bind.host)
          end

          def tcp(host)
            Addrinfo.getaddrinfo(host, nil, nil, :STREAM)
            nil
          rescue SocketError
            "can't listen on #{host}: there is no host of that name"
          end

          def unix(path)
            folder = File.dirname(path)
            if path.bytesize > LONGEST_PATH
              "can't listen on unix:#{path}: a socket's path may have #{LONGEST_PATH} bytes, this one has " \
                "#{path.bytesize}"
            elsif !File.directory?(folder) then "can't listen on unix:#{path}: the folder #{folder} does not exist"
            elsif !File.writable?(folder) then "can't listen on unix:#{path}: this user may not write to #{folder}"
            elsif File.exist?(path) && !File.socket?(path) then "can't listen on unix:#{path}: that is a file"
            end
          end
        end
      end
    end
  end
end
