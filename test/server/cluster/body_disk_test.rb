# frozen_string_literal: true

require_relative "cluster_case"

# body_disk_limit is for the whole server: all workers share it.
class ClusterBodyDiskTest < Minitest::Test
  include ClusterCase

  LIMIT = 1_000_000
  UPLOAD = 800_000 # bytes: two of them are more than the limit
  SENT = 700_000

  def test_bodies_of_one_worker_leave_less_room_to_the_others
    serve("--body-disk-limit", LIMIT.to_s, "--control", "unix:control.sock")
    first, second = connections_of_two_workers
    first.write(head + ("x" * SENT))
    wait_until { metrics["heddle_body_disk_bytes"].values.sum > LIMIT - UPLOAD }

    second.write(head)

    assert_match(%r{\AHTTP/1.1 503 .*retry-after: 1\r\n}im, second.readpartial(10_000))
  ensure
    [first, second].each { |socket| socket&.close }
  end

  def test_the_bodies_of_a_worker_that_was_killed_count_no_more
    serve("--body-disk-limit", LIMIT.to_s, "--control", "unix:control.sock")
    first, second, pid = connections_of_two_workers
    first.write(head + ("x" * SENT))
    wait_until { metrics["heddle_body_disk_bytes"].values.sum > LIMIT - UPLOAD }
    Process.kill(:KILL, pid)
    wait_until { client.status[:workers].none? { |worker| worker[:pid] == pid } }

    second.write(head + ("x" * UPLOAD))

    assert_match(%r{\AHTTP/1.1 200 }, second.readpartial(10_000))
  ensure
    [first, second].each { |socket| socket&.close }
  end

  # When a process ends, Ruby frees its objects in any order: a body after the shared memory that counts it.
  def test_a_worker_that_ends_while_a_body_is_in_its_file_does_not_crash
    write("config.ru", "run ->(env) { ($kept ||= []) << env['rack.input']; [200, {}, [$$.to_s]] }\n")
    serve(workers: 1)
    3.times { Net::HTTP.post(served.at("/"), "x" * UPLOAD) }
    status = served.stop

    assert_predicate status, :success?, served.output
    refute_match(/\[BUG\]|SIGSEGV/, served.output)
  end

  private

  def head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: #{UPLOAD}\r\n\r\n"
end
