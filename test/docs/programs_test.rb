# frozen_string_literal: true

# test: smoke

require "test_helper"
require "support/free_port"
require_relative "../http/client/support/client_case"
require_relative "../net/dns/support/dns_case"

# The Ruby programs of docs/http_client.md and docs/dns.md run as they stand there, but for the addresses.
class DocsProgramsTest < ClientCase
  include Heddle::TestHelpers::DNSCase

  # A program finds no proxy in its environment.
  ENVIRONMENT = %w[http_proxy HTTP_PROXY https_proxy HTTPS_PROXY].to_h { |name| [name, nil] }
  LISTEN = "127.0.0.1:5353"

  def programs(page) = File.read(File.join(ROOT, "docs", page)).scan(/^```ruby\n(.*?)^```/m).flatten

  def answer_api(socket, request)
    case [request.method, request.target]
    in ["GET", "/price?id=7" | %r{\A/[abc]/price\z}] | ["POST", "/orders"] then socket.write(hello('{"price":7}'))
    in ["GET", "/"] then socket.write(hello)
    in ["GET", _]
      again = request["last-event-id"]
      status = again ? "204 No Content" : "200 OK"
      socket.write("HTTP/1.1 #{status}\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
      socket.write("id: 3\nretry: 1\ndata: of #{request.target}\n\n") unless again
      socket.close
    end
  end

  def test_the_page_of_the_client
    server = serve { |socket, request| answer_api(socket, request) }
    program = programs("http_client.md").join("\n").gsub(%r{https://(api\.example|example\.com)}, server.url)
    out, status = ruby("def save(id, data) = puts([id, data].join(\" \"))\n#{program}", env: ENVIRONMENT)

    assert_predicate status, :success?, out
    assert_equal "of /events\n3 of /prices\n", out
    assert_equal ["GET /", "GET /a/price", "GET /b/price", "GET /c/price", "GET /events", "GET /price?id=7",
                  "GET /prices", "GET /prices", "POST /orders"],
                 server.received.map { |request| "#{request.method} #{request.target}" }.sort
  end

  def test_the_first_server_of_the_page_of_dns
    run_program(dns_program(/\Arequire/)) do |dns|
      assert_equal "about ruby", dns.ask("ruby.wiki", :TXT).answers.first.data.text
      assert_equal :NXDOMAIN, dns.ask("name.invalid", :A).rcode, "what is forwarded"
    end
  end

  def test_questions_of_the_page_of_dns
    asked = Thread::Queue.new
    answer = lambda do |query|
      asked << [query.name, query.type]
      query.type == :MX ? query.answer([10, "mail.example.org"]) : query.answer([0, 0, 993, "imap.example.org"])
    end
    serving(answer) do |dns|
      client = "Heddle::Net::DNS::Client.new(\"127.0.0.1:#{dns.port}\")"
      program = dns_program(/\AHeddle::Net::DNS\.records/).sub("Heddle::Net::DNS.records", "#{client}.records")
                                                          .sub(/Heddle::Net::DNS::Client\.new\(.*:5353"\)/, client)
      out, status = ruby("require 'heddle'; require 'heddle/net/dns'\n#{program}")

      assert_predicate status, :success?, out
      assert_equal "mail.example.org\n", out
      assert_equal [["example.org", :MX], ["_imaps._tcp.example.org", :SRV]], Array.new(2) { asked.pop }
    end
  end

  def test_the_server_among_other_tasks_of_the_page_of_dns
    run_program(dns_program(/\Aserver =/).sub('"[::1]:5353"', '"127.0.0.2:5353"')) do |dns|
      assert_equal "192.0.2.1", dns.ask("www.example.org", :A).answers.first.data.address
    end
  end

  def test_no_program_of_the_page_of_dns_is_left_out
    assert_equal 3, programs("dns.md").size
  end

  private

  def dns_program(beginning) = programs("dns.md").find { |program| program.match?(beginning) }

  # Runs a program that serves on LISTEN, on a free port instead.
  # @yieldparam [Running]
  def run_program(program)
    port = FreePort.find
    program = program.gsub(/(?<=127\.0\.0\.[12]):5353/, ":#{port}")
    pid = spawn(RbConfig.ruby, "-I#{ROOT}/lib", "-rheddle", "-rheddle/net/dns", "-e",
                "def summary(title) = \"about \#{title}\"\n#{program}", out: File::NULL)
    wait_until("the program listens") { listening?(port) || (Process.wait(pid, Process::WNOHANG) && flunk("it ended")) }
    yield Running.new(Struct.new(:addresses).new(["127.0.0.1:#{port}"]))
  ensure
    stop(pid)
  end

  def listening?(port)
    TCPSocket.new("127.0.0.1", port).close
    true
  rescue Errno::ECONNREFUSED
    false
  end

  def stop(pid)
    Process.kill(:TERM, pid)
    Process.wait(pid)
  rescue SystemCallError
    nil # it has ended
  end
end
