# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "heddle/net/resolver"
require_relative "name_server"

module Heddle
  module TestHelpers
    # What tests of the resolver need: a name server, files, a clock that the test sets.
    module ResolverCase
      NameServer = Heddle::TestHelpers::NameServer

      # A clock that stands still until told.
      class Clock
        attr_accessor :now

        def initialize = @now = 1_000.0
        def call = @now
      end

      def setup
        super
        @servers = []
        @folder = Dir.mktmpdir
        @hosts = File.join(@folder, "hosts")
        File.write(@hosts, "127.0.0.1 localhost\n")
      end

      def teardown
        @servers.each(&:close)
        FileUtils.remove_entry(@folder)
        super
      end

      def name_server(**options)
        NameServer.new(**options).tap { |server| @servers << server }
      end

      # A resolver that asks these servers, has no route to IPv6 and looks into the test's own hosts file.
      def resolver_for(*servers, **options)
        Heddle::Net::Resolver.new(nameservers: servers.map(&:address), hosts: @hosts,
                                  reachable: ->(address) { !address.include?(":") }, **options)
      end

      # Waits for what other threads are about to do.
      def wait_until(what)
        limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
        until yield
          flunk "#{what}: not within a minute" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
          sleep 0.001
        end
      end

      # A port where nobody listens: bound and closed again.
      def dead_port
        socket = UDPSocket.new
        socket.bind("127.0.0.1", 0)
        socket.addr[1]
      ensure
        socket.close
      end

      # Replaces a file as editors do, by a new one in its place.
      def replace(path, text)
        fresh = "#{path}.new"
        File.write(fresh, text)
        File.rename(fresh, path)
      end
    end
  end
end
