# frozen_string_literal: true

require_relative "../../lib/heddle/version"

module Bench
  module DNS
    # A name server with one static answer. Name servers in C are baselines: a ceiling, no rivals.
    class Contestant
      # The server can't be run here, with the reason.
      class Unavailable < StandardError; end

      FOLDERS = ENV.fetch("PATH").split(":") + ["/usr/sbin"]

      # @return [String] the word for --contestants
      attr_reader :key
      # @return [String] the heading of its column
      attr_reader :label
      # @return [Symbol] :heddle, :peer or :baseline
      attr_reader :role

      # @param key [String] a program's name, where it is no Ruby
      def initialize(key, label: key, role: :baseline)
        @key = key
        @label = label
        @role = role
      end

      # @return [Hash] environment variables beside the common ones
      def environment = {}

      # @param port [Integer] to listen on, at 127.0.0.1
      # @param folder [String] an empty folder for files it needs
      # @param ruby_flags [Array<String>]
      # @return [Array<String>]
      def command(_port, _folder, _ruby_flags) = raise(NotImplementedError)

      private

      # @raise [Unavailable]
      def program(name = key)
        folders = FOLDERS + [File.join(ROOT, "vendor", name, "usr/sbin")]
        folders.map { |folder| File.join(folder, name) }.find { |path| File.executable?(path) } ||
          raise(Unavailable, "#{name} is not installed")
      end

      # What the program says of itself, up to the first word that is a version.
      def version_of(*command)
        text, = Open3.capture2e(*command)
        text[/\d+\.\d+(?:\.\d+)*/] || "of unknown version"
      end
    end

    # A Ruby program beside this file.
    class RubyProgram < Contestant
      def initialize(key, **)
        super
        @program = File.join(__dir__, "#{key}.rb")
      end

      # @return [String] the checkout whose Heddle it runs
      def root = ROOT

      def command(port, _folder, ruby_flags)
        gem_paths = File.join(root, "bin", "support", "gem_paths.rb")
        [RbConfig.ruby, *ruby_flags, "-r", gem_paths, "-I#{root}/lib", @program, port.to_s]
      end

      def version
        return Heddle::VERSION unless role == :peer

        Gem::Specification.find_by_name(key).version.to_s
      rescue Gem::MissingSpecError
        raise Unavailable, "the gem #{key} is not installed"
      end
    end

    # dnsmasq, which forwards nothing here.
    class Dnsmasq < Contestant
      def version = version_of(program, "--version")

      def command(port, _folder, _ruby_flags)
        [program, "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--bind-interfaces",
         "--listen-address=127.0.0.1", "--user=#{Etc.getpwuid.name}", "--pid-file", "--port=#{port}",
         "--address=/bench.test/192.0.2.1", "--dns-forward-max=1000"]
      end
    end

    # unbound with local data only.
    class Unbound < Contestant
      def version = version_of(program, "-V")

      def command(port, folder, _ruby_flags)
        File.write("#{folder}/unbound.conf", <<~CONF)
          server:
            interface: 127.0.0.1
            port: #{port}
            do-daemonize: no
            chroot: ""
            username: ""
            directory: "#{folder}"
            pidfile: ""
            use-syslog: no
            logfile: "#{folder}/log"
            num-threads: 1
            local-zone: "bench.test." redirect
            local-data: "bench.test. A 192.0.2.1"
          remote-control:
            control-enable: no
        CONF
        [program, "-d", "-c", "#{folder}/unbound.conf"]
      end
    end

    # nsd with one zone.
    class Nsd < Contestant
      def version = version_of(program, "-v")

      def command(port, folder, _ruby_flags)
        File.write("#{folder}/zone", "$ORIGIN bench.test.\n@ 60 SOA ns a 1 2 3 4 5\n@ 60 NS ns\n* 60 A 192.0.2.1\n")
        File.write("#{folder}/nsd.conf", <<~CONF)
          server:
            ip-address: 127.0.0.1@#{port}
            server-count: 1
            username: ""
            chroot: ""
            zonesdir: "#{folder}"
            pidfile: "#{folder}/pid"
            xfrdfile: "#{folder}/xfrd"
            zonelistfile: "#{folder}/zones"
            logfile: "#{folder}/log"
            database: ""
            xfrdir: "#{folder}"
            rrl-ratelimit: 0
          remote-control:
            control-enable: no
          zone:
            name: bench.test
            zonefile: zone
        CONF
        [program, "-d", "-c", "#{folder}/nsd.conf"]
      end
    end
  end
end
