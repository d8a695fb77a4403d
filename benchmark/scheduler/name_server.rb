# frozen_string_literal: true

# A name server that takes half a second for each question, and answers A with an address and anything else with none.
# It is given the address to listen on, and says `ready`.

require "socket"

DELAY = 0.5
ADDRESS = [192, 0, 2, 1].pack("C4")
HEAD = 12 # bytes

# @param question [String] a packet with one question
# @return [String]
def answer(question)
  finish = HEAD
  finish += question.getbyte(finish) + 1 until question.getbyte(finish).zero?
  asked = question[HEAD..(finish + 4)]
  with_address = asked.end_with?([1, 1].pack("n2"))
  head = question[0, 2] + [0x8180, 1, with_address ? 1 : 0, 0, 0].pack("n5")
  return head + asked unless with_address

  head + asked + [0xc00c, 1, 1, 60, 4].pack("n3Nn") + ADDRESS
end

socket = UDPSocket.new
socket.bind(ARGV.fetch(0), 53)
$stdout.puts("ready")
$stdout.flush
waiting = []
loop do
  pause = waiting.empty? ? nil : [waiting.first.first - Process.clock_gettime(Process::CLOCK_MONOTONIC), 0].max
  if socket.wait_readable(pause)
    question, sender = socket.recvfrom(512)
    waiting << [Process.clock_gettime(Process::CLOCK_MONOTONIC) + DELAY, question, sender]
  end
  while waiting.any? && waiting.first.first <= Process.clock_gettime(Process::CLOCK_MONOTONIC)
    _, question, sender = waiting.shift
    socket.send(answer(question), 0, sender[3], sender[1])
  end
end
