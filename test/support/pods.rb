# frozen_string_literal: true

require "net/http"
require "socket"
require "support/served_process"
require "support/steady_load"
require_relative "free_port"

# Copies of an application behind HAProxy, as the pods of a Kubernetes service: a new one is started and gets requests
# when its health check is answered, then TERM is sent to an old one, which still gets requests until its health check
# has failed. HAProxy sends no request twice.
class Pods
  # One more than run: the new one has a place before the old one's is free.
  PLACES = 3
  CHECK_INTERVAL = 0.3
  # Seconds.
  TIMEOUT = 60

  # @param folder [String] with a config.ru that answers with the process's number in `x-worker`
  # @param environment [Hash] of each pod
  # @param arguments [Array<String>] of `heddle serve`
  def initialize(folder, *arguments, environment: {})
    @folder = folder
    @arguments = arguments
    @environment = environment
    @ports = Array.new(PLACES + 1) { FreePort.find }
    @pods = Array.new(PLACES)
    start_proxy
    (PLACES - 1).times { |place| start(place) }
  end

  # @return [SteadyLoad] over HAProxy
  def load(**) = SteadyLoad.new("127.0.0.1", @ports.last, **)

  # Replaces the oldest pod by a new one.
  # @return [String] what the old one has printed
  def replace
    old = @pods.compact.min_by(&:pid)
    start(@pods.index(nil))
    @pods[@pods.index(old)] = nil
    stop(old)
  end

  def stop_all
    @pods.compact.each(&:stop)
    Process.kill("KILL", @proxy)
    Process.wait(@proxy)
  end

  private

  def start(place)
    @pods[place] = ServedProcess.new([*ServedProcess::HEDDLE, "serve", "-b", "127.0.0.1:#{@ports[place]}",
                                      "--control", "unix:pod#{place}.sock", *@arguments],
                                     folder: @folder, environment: @environment)
    wait_until("pod #{place} gets no requests") { status(place) == "UP" }
  end

  def stop(pod)
    Process.kill("TERM", pod.pid)
    status = pod.wait
    raise "a pod ended with #{status}: #{pod.output}" unless status.success?

    pod.output
  end

  def start_proxy
    path = File.join(@folder, "haproxy.cfg")
    servers = Array.new(PLACES) { |place| "  server pod#{place} 127.0.0.1:#{@ports[place]} check" }
    File.write(path, <<~TEXT)
      global
        stats socket #{socket_path} mode 600
      defaults
        mode http
        retries 0
        http-reuse safe
        timeout connect #{TIMEOUT}s
        timeout client #{TIMEOUT}s
        timeout server #{TIMEOUT}s
        default-server inter #{(CHECK_INTERVAL * 1000).to_i}ms fall 1 rise 1 init-addr none
      frontend service
        bind 127.0.0.1:#{@ports.last}
        default_backend pods
      backend pods
        option httpchk GET /up
        http-check send ver HTTP/1.1 hdr Host localhost
      #{servers.join("\n")}
    TEXT
    @proxy = spawn("haproxy", "-db", "-f", path, %i[out err] => File.join(@folder, "haproxy.log"))
    wait_until("HAProxy does not start") { File.socket?(socket_path) }
  end

  def socket_path = File.join(@folder, "haproxy.sock")

  # @return [String] what HAProxy thinks of the pod: UP or DOWN
  def status(place)
    text = UNIXSocket.open(socket_path) do |socket|
      socket.write("show stat\n")
      socket.read
    end
    text[/^pods,pod#{place},(?:[^,]*,){15}([A-Z]+)/, 1]
  end

  def wait_until(what)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + TIMEOUT
    until yield
      raise what if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

      sleep 0.02
    end
  end
end
