# frozen_string_literal: true

require "fiddle"
require "socket"
require "tempfile"

module Bench
  module Rows
    # Twenty names, looked up at once by Ruby's own call, of a name server that takes half a second. Every library reads
    # its address in resolv.conf: the child replaces that file in a mount namespace of its own.
    class Resolve < Row
      NAMES = 20
      SERVER = "127.0.53.53"
      RESOLV_CONF = "/etc/resolv.conf"
      ADDRESS = "192.0.2.1"
      NEW_MOUNTS = 0x00020000 # CLONE_NEWNS
      private_constant :NAMES, :SERVER, :RESOLV_CONF, :ADDRESS, :NEW_MOUNTS

      def key = "resolve"

      def title = "20 × Addrinfo.getaddrinfo, the name server answers after 0.5 s"

      def unit = "s"

      def sizes(quick:) = { quick: }

      def excludes(contestant)
        return "10 s by arithmetic" if contestant.key == "blocking"

        "needs Linux, and root" unless Process.uid.zero? && RUBY_PLATFORM.include?("linux")
      end

      def around(_quick)
        server = IO.popen([RbConfig.ruby, File.join(__dir__, "name_server.rb"), SERVER], err: File::NULL)
        raise Child::Failed, "no name server could listen on #{SERVER}" unless server.gets == "ready\n"

        yield({})
      ensure
        Process.kill(:KILL, server.pid)
        server.close
      end

      def measure(contestant, _size)
        use_name_server
        found = 0
        seconds, = timed do
          contestant.run do
            NAMES.times { |number| contestant.spawn { found += 1 if look_up("host#{number}.bench.test") == ADDRESS } }
          end
        end
        check(found, NAMES, "names were found")
        { value: seconds }
      end

      private

      def look_up(name) = Addrinfo.getaddrinfo(name, 80, :INET, :STREAM).first.ip_address

      def use_name_server
        unshare = Fiddle::Function.new(Fiddle::Handle::DEFAULT["unshare"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT)
        file = Tempfile.create("resolv.conf").tap { |one| one.write("nameserver #{SERVER}\noptions timeout:5\n") }
        file.close
        done = unshare.call(NEW_MOUNTS).zero? && system("mount", "--make-rprivate", "/") &&
               system("mount", "--bind", file.path, RESOLV_CONF)
        raise "resolv.conf could not be replaced in a namespace" unless done

        # Ruby's Resolv, which async uses, has read the file when it was loaded.
        ::Resolv::DefaultResolver.replace_resolvers([::Resolv::Hosts.new, ::Resolv::DNS.new]) if defined?(::Resolv)
      ensure
        File.unlink(file.path) if file
      end
    end
  end
end
