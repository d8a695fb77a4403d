# frozen_string_literal: true

require "etc"
require "rbconfig"
require "socket"
require "tmpdir"

# One server, started for one measurement.
class DNSContestant
  ROOT = File.expand_path("../..", __dir__)
  PATIENCE = 10
  QUERY = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x05bench\x04test\x00\x00\x01\x00\x01".b

  def self.all
    ruby = [RbConfig.ruby, "-I#{ROOT}/lib"]
    [
      new("Heddle") { |port, _| [*ruby, "#{ROOT}/benchmark/dns/heddle.rb", port] },
      new("RubyDNS") { |port, _| [*ruby, "#{ROOT}/benchmark/dns/rubydns.rb", port] },
      new("dnsmasq") { |port, folder| dnsmasq(port, folder) },
      new("unbound") { |port, folder| unbound(port, folder) },
      new("nsd") { |port, folder| nsd(port, folder) }
    ]
  end

  def self.program(name)
    folders = ENV.fetch("PATH").split(":") + ["/usr/sbin", "#{ROOT}/vendor/#{name}/usr/sbin"]
    folders.map { |folder| File.join(folder, name) }.find { |path| File.executable?(path) }
  end

  def self.dnsmasq(port, _folder)
    path = program("dnsmasq") or return
    [path, "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--bind-interfaces",
     "--listen-address=127.0.0.1", "--user=#{Etc.getpwuid.name}", "--pid-file", "--port=#{port}",
     "--address=/bench.test/192.0.2.1", "--dns-forward-max=1000"]
  end

  def self.unbound(port, folder)
    path = program("unbound") or return
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
    [path, "-d", "-c", "#{folder}/unbound.conf"]
  end

  def self.nsd(port, folder)
    path = program("nsd") or return
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
    [path, "-d", "-c", "#{folder}/nsd.conf"]
  end
  private_class_method :program, :dnsmasq, :unbound, :nsd

  attr_reader :name, :trouble

  def initialize(name, &command)
    @name = name
    @command = command
  end

  # @yieldparam port [Integer]
  # @return [Object, nil] what the block returned; nil when the server can't run here
  def run
    Dir.mktmpdir do |folder|
      port = free_port
      command = @command.call(port.to_s, folder) or return give_up("not installed")
      @pid = Process.spawn(*pin(0), *command, in: File::NULL, %i[out err] => "#{folder}/output", pgroup: true)
      up?(port) ? yield(port) : give_up(File.read("#{folder}/output").lines.last.to_s.strip)
    ensure
      stop
    end
  end

  # @return [Float] seconds of CPU that the server's processes have used
  def cpu
    Dir["/proc/[0-9]*/stat"].sum do |path|
      fields = File.read(path).rpartition(")").last.split
      fields[2].to_i == @pid ? (fields[11].to_i + fields[12].to_i) / Etc.sysconf(Etc::SC_CLK_TCK).to_f : 0
    rescue SystemCallError
      0
    end
  end

  def pin(core) = Etc.nprocessors > 1 && File.executable?("/usr/bin/taskset") ? ["taskset", "-c", core.to_s] : []

  private

  def give_up(reason)
    @trouble = reason
    nil
  end

  def free_port = UDPSocket.new.then { |socket| socket.bind("127.0.0.1", 0) && socket.addr[1].tap { socket.close } }

  def up?(port)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    socket = UDPSocket.new
    socket.connect("127.0.0.1", port)
    while Process.clock_gettime(Process::CLOCK_MONOTONIC) < limit
      return false if Process.wait(@pid, Process::WNOHANG).tap { |ended| @pid = nil if ended }

      begin
        socket.send(QUERY, 0)
        return true if socket.wait_readable(0.1) && socket.recv(512).bytesize > QUERY.bytesize
      rescue Errno::ECONNREFUSED
        sleep 0.05
      end
    end
    false
  ensure
    socket.close
  end

  def stop
    return unless @pid

    Process.kill(:TERM, -@pid)
    Process.wait(@pid)
  end
end
